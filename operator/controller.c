/* controller.c - when to reconcile which job, and what the passes share. */
#include "operator/pass.h"

#include "common/memory.h"
#include "operator/plan/progress.h"

#include <stdlib.h>
#include <string.h>

static void on_job_gone(void *ctx, const struct kube_store_entry *job)
{
    struct controller *c = ctx;

    c->counts.deleted += kube_reconciler_term(c->reconciler) != 0;
    kube_store_remove(c->states, "", job->uid,
                      NULL); /* its key may not come any more: see kube_reconciler_lead */
    poller_forget(c->poller, job->uid);
}

static void on_problem(void *ctx, const char *what, const struct err *err)
{
    struct controller *c = ctx;

    log_line(c->log, LOG_WARN, "watch failed", (const char *[]){"resource", what, "error", err->msg, NULL});
}

/* What was believed before the lease was lost may be wrong: others have worked since. */
static void begin_term(void *ctx)
{
    struct controller *c = ctx;

    kube_store_free(c->states);
    c->states = kube_store_new(keystate_free);
    term_begin(&c->term);
}

static bool leads(void *ctx)
{
    const struct controller *c = ctx;

    return kube_reconciler_term(c->reconciler) != 0;
}

struct keystate *controller_state_of(struct controller *c, const char *uid)
{
    const struct kube_store_entry *e = kube_store_get(c->states, "", uid);

    if (!e)
        e = kube_store_put(c->states, "", uid, uid, NULL, keystate_new(uid));
    return e->value;
}

static void on_answered(void *ctx, const struct poller_target *target,
                        const struct jobprogress_answer *answer)
{
    struct controller *c = ctx;
    struct keystate *k = controller_state_of(c, target->job_uid);

    k->progress.answered = true;
    k->progress.answer = *answer;
    k->progress.attempt = target->attempt;
    if (progress_is_news(&k->progress, &k->shown, controller_wall(c)))
        kube_reconciler_add(c->reconciler, target->ns, target->job_uid);
}

/* Known without planning again: the same spec, and no smaller portion of pods to plan it with. */
static bool still_lacks_room(const struct controller *c, const struct keystate *k, const struct jobtext *job)
{
    return k->need_bytes && k->need_generation == job->generation &&
           k->need_create <= budget_create_bytes(&c->budget) &&
           !budget_has_room(&c->budget, job->ns, k->need_bytes);
}

static void reconcile(void *ctx, struct kube_work *w)
{
    struct controller *c = ctx;
    const char *uid = kube_work_key(w);
    const struct jobtext *cached = watches_job(&c->watches, uid);
    struct err err;

    if (!cached) {
        kube_store_remove(c->states, "", uid, NULL);
        poller_forget(c->poller, uid);
        kube_work_done(w);
        return;
    }
    /* The key of someone's child in another namespace, that says it is this job's. */
    if (strcmp(cached->ns, kube_work_ns(w)) != 0) {
        kube_work_done(w);
        return;
    }
    struct keystate *k = controller_state_of(c, uid);
    if (still_lacks_room(c, k, cached)) {
        kube_work_after(w, PASS_NO_ROOM_MS);
        return;
    }
    c->begun_ms = controller_mono(c);
    if (c->begun_ms < k->rest_until_ms) {
        kube_work_after(w, k->rest_until_ms - c->begun_ms);
        return;
    }
    bool visible = keystate_visible(k, &c->watches, cached->resource_version);
    if (!visible && controller_now(c) < k->expected_until_ms) {
        kube_work_after(w, k->expected_until_ms - controller_now(c));
        return;
    }
    keystate_expired(k, !visible);
    cleanup_trainjob struct trainjob *job = jobtext_decode(cached, &err);
    if (!job) {
        on_problem(c, "pytorchtrainingjobs", &err);
        kube_work_retry(w, -1);
        return;
    }
    pass_begin(c, w, job, k);
}

struct controller *controller_new(struct kube_loop *l, const struct kube_transport *t,
                                  struct kube_recorder *r, const struct log *log,
                                  const struct controller_options *options)
{
    struct controller *c = memory_must(calloc(1, sizeof(*c)));

    c->loop = l;
    c->transport = t;
    c->recorder = r;
    c->log = log;
    c->options = *options;
    c->states = kube_store_new(keystate_free);
    c->reconciler = kube_reconciler_new(l, t,
                                        &(struct kube_reconciler_options){.name = "pytorchtrainingjob",
                                                                          .ctx = c,
                                                                          .reconcile = reconcile,
                                                                          .begins = begin_term,
                                                                          .problem = on_problem,
                                                                          .seed = options->seed});
    c->poller = poller_new(
        l, &(struct poller_options){.ctx = c,
                                    .seed = options->seed,
                                    .leads = leads,
                                    .answered = on_answered,
                                    .url = options->progress_url ? options->progress_url : podaddress_url});
    term_init(&c->term, l, t, options->ns);
    watches_add(&c->watches, c->reconciler, options->ns, on_job_gone);
    return c;
}

void controller_free(struct controller *c)
{
    if (!c)
        return;
    poller_free(c->poller);
    kube_reconciler_free(c->reconciler);
    term_release(&c->term);
    kube_store_free(c->states);
    free(c);
}

struct kube_reconciler *controller_reconciler(const struct controller *c)
{
    return c->reconciler;
}

struct watches_counts controller_cached(const struct controller *c)
{
    return watches_counts(&c->watches);
}

const struct kube_store *controller_jobs(const struct controller *c)
{
    return watches_children(&c->watches, CHILD_JOB);
}

struct controller_counts controller_counts(const struct controller *c)
{
    struct controller_counts counts = c->counts;

    counts.pass_bytes = c->budget.held_bytes;
    counts.polls = poller_counts(c->poller);
    return counts;
}
