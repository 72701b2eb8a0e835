/* controller.c - reconcile one job: take a snapshot, plan, apply, and schedule the next pass. */
#include "operator/controller.h"

#include "common/memory.h"
#include "operator/apply.h"
#include "operator/budget.h"
#include "operator/keystate.h"
#include "operator/plan/progress.h"
#include "operator/request.h"
#include "operator/snapshot.h"
#include "operator/term.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    STALE_CACHE_MS = 1000,
    SAME_NAME_MS = 1000,
    NO_ROOM_MS = 250,
    PUT_OFF_MS = 500,
    PUT_OFF_MAX_MS = 5000,
};

struct controller {
    struct kube_loop *loop;
    const struct kube_transport *transport;
    struct kube_recorder *recorder;
    const struct log *log;
    struct controller_options options;
    struct kube_reconciler *reconciler;
    struct watches watches;
    struct kube_store *states; /* struct keystate by UID, of this term */
    struct term term;
    struct poller *poller; /* of those that run */
    struct budget budget;  /* of the passes under way */
    struct controller_counts counts;
};

/* What goes with one key while it is worked on. */
struct pass {
    struct controller *c;
    uint64_t term;
    struct kube_work *work;
    struct arena names;
    struct apply_target target; /* strings in `names` */
    struct arena arena;         /* of the plan and its requests */
    struct budget_share share;
    int64_t begun_ms;
    struct plan plan;
    int attempt;
    int64_t generation;  /* of the spec that was planned */
    const char *version; /* of the job */
    int n_gone_used;
    struct apply *apply; /* under way */
};

static int64_t now(const struct controller *c)
{
    return kube_loop_now_ms(c->loop);
}

static int64_t wall(const struct controller *c)
{
    struct clock clock = kube_loop_clock(c->loop);

    return clock.wall_ms(clock.ctx);
}

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

static struct keystate *state_of(struct controller *c, const char *uid)
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
    struct keystate *k = state_of(c, target->job_uid);

    k->progress.answered = true;
    k->progress.answer = *answer;
    k->progress.attempt = target->attempt;
    if (progress_is_news(&k->progress, &k->shown, wall(c)))
        kube_reconciler_add(c->reconciler, target->ns, target->job_uid);
}

static void log_pass(const struct controller *c, const struct pass *p, enum log_level level, const char *msg,
                     const struct err *err)
{
    char job[160];
    char attempt[16];

    snprintf(job, sizeof(job), "%s/%s", p->target.ns, p->target.job);
    snprintf(attempt, sizeof(attempt), "%d", p->attempt);
    log_line(c->log, level, msg,
             (const char *[]){"job", job, "uid", p->target.uid, "attempt", attempt, "error", err->msg, "kind",
                              err_kind_name(err->kind), NULL});
}

static void pass_free(void *data)
{
    struct pass *p = data;

    apply_cancel(p->apply);
    budget_give(&p->c->budget, &p->share);
    arena_release(&p->arena);
    arena_release(&p->names);
    free(p);
}

static struct pass *pass_new(struct controller *c, struct kube_work *w, const struct trainjob *job)
{
    struct pass *p = memory_must(calloc(1, sizeof(*p)));

    p->c = c;
    p->term = kube_reconciler_term(c->reconciler);
    p->work = w;
    p->begun_ms = now(c);
    p->attempt = job->status.attempt;
    p->generation = job->generation;
    p->version = arena_strdup(&p->names, job->resource_version);
    p->target = (struct apply_target){arena_strdup(&p->names, job->ns), arena_strdup(&p->names, job->name),
                                      arena_strdup(&p->names, job->uid)};
    kube_work_attach(w, p, pass_free);
    return p;
}

static void count_wait(struct latency *l, int64_t since_ms, int64_t wall_ms)
{
    if (since_ms)
        latency_add(l, wall_ms - since_ms);
}

static void count(struct controller *c, const struct pass *p, const struct apply_result *r)
{
    const struct plan_waits *waits = &p->plan.waits;

    if (r->pods_created)
        count_wait(&c->counts.first_pod, waits->first_pod_ms, wall(c));
    c->counts.pods_created += (uint64_t)r->pods_created;
    c->counts.pods_deleted += (uint64_t)r->pods_deleted;
    if (!r->status_written)
        return;
    c->counts.created += p->plan.started;
    c->counts.succeeded += p->plan.succeeded;
    c->counts.failed += p->plan.failed;
    c->counts.restarted += p->plan.restarted;
    count_wait(&c->counts.running, waits->running_ms, wall(c));
    count_wait(&c->counts.running_again, waits->running_again_ms, wall(c));
}

static void after_failure(struct pass *p, const struct apply_result *r, bool told)
{
    struct controller *c = p->c;

    c->counts.failures++;
    if (told) {
        log_pass(c, p, LOG_WARN, "create refused", &r->err);
        kube_work_after(p->work, 0); /* to say so in the status */
    } else if (r->wait) {
        kube_work_after(p->work, SAME_NAME_MS);
    } else {
        bool conflict = r->err.kind == ERR_CONFLICT || r->err.kind == ERR_NOT_FOUND;
        log_pass(c, p, conflict ? LOG_DEBUG : LOG_WARN, "pass failed", &r->err);
        kube_work_retry(p->work, r->retry_after_ms);
    }
}

static void after_success(struct pass *p, const struct apply_result *r)
{
    int64_t delay = INT64_MAX;

    if (p->plan.requeue_ms)
        delay = p->plan.requeue_ms - wall(p->c);
    if (r->checked_stale)
        delay = delay < STALE_CACHE_MS ? delay : STALE_CACHE_MS;
    else if (r->n_gone_uids || r->status_written || r->n_expected)
        delay = 0;
    if (delay == INT64_MAX)
        kube_work_done(p->work);
    else
        kube_work_after(p->work, delay);
}

/* It teaches nothing, and its key comes again when this process leads: all do. */
static bool is_of_earlier_term(const struct pass *p)
{
    return p->term != kube_reconciler_term(p->c->reconciler);
}

static void on_applied(void *ctx, const struct apply_result *r)
{
    struct pass *p = ctx;
    struct controller *c = p->c;

    p->apply = NULL;
    if (is_of_earlier_term(p)) {
        kube_work_done(p->work);
        return;
    }
    struct keystate *k = state_of(c, p->target.uid);
    if (r->status_written)
        k->unreadable_told = p->plan.unreadable;
    bool told = keystate_learn(k, r,
                               &(struct keystate_pass){p->generation, p->n_gone_used, now(c) - p->begun_ms,
                                                       p->version, p->plan.pods_first, p->plan.progressed,
                                                       p->plan.progress_only, p->plan.slow_rank},
                               wall(c), now(c));
    count(c, p, r);
    if (r->ok)
        after_success(p, r);
    else
        after_failure(p, r, told);
}

static void on_read(void *ctx, struct kube_work *w, struct kube_reply *reply)
{
    struct pass *p = kube_work_data(w);
    struct controller *c = ctx;
    const char *version =
        json_str(json_find(reply->names, (const char *[]){"metadata", NULL}), "resourceVersion");

    if (is_of_earlier_term(p)) {
        kube_work_done(w);
        return;
    }
    if (reply->err && reply->err->kind == ERR_NOT_FOUND) {
        watches_forget_job(&c->watches,
                           p->target.uid); /* its watch is behind, or dead and nobody noticed yet */
        kube_work_after(w, 0);
        return;
    }
    if (reply->err) {
        c->counts.failures++;
        log_pass(c, p, LOG_WARN, "reading the job failed", reply->err);
        kube_work_retry(w, reply->status.retry_after_ms);
        return;
    }
    struct keystate *k = state_of(c, p->target.uid);
    k->read_first = false;
    if (!reply->names) { /* so long that not even they came: nobody vouches for what the watch tells */
        k->confirmed = false;
        log_pass(c, p, LOG_WARN, "the job cannot be read", reply->unreadable);
        kube_work_retry(w, -1);
        return;
    }
    snprintf(k->live_version, sizeof(k->live_version), "%s", version ? version : "");
    snprintf(k->status_version, sizeof(k->status_version), "%s", version ? version : "");
    k->confirmed = true;
    watches_put_job(&c->watches, p->target.uid, reply->names, reply->unreadable);
    kube_work_after(w, 0);
}

static void read_live(struct pass *p)
{
    arena_release(&p->arena);
    kube_work_send(p->work,
                   &(struct kube_request){
                       .verb = KUBE_GET, .resource = &TRAINJOBS, .ns = p->target.ns, .name = p->target.job},
                   on_read);
}

/* Whether children are made or removed on the word of a job that nobody vouched for: a status that is written first
 * carries the version it was planned from, and the API server refuses it when that is old. A new job has only one past. */
static bool acts_unconfirmed(const struct plan *plan, const struct plan_input *in, const struct keystate *k)
{
    if (k->confirmed || in->job_is_new || (plan->n_actions > 0 && plan->actions[0].kind == ACTION_STATUS))
        return false;
    for (int i = 0; i < plan->n_actions; i++)
        if (plan->actions[i].kind != ACTION_EVENT && plan->actions[i].kind != ACTION_CHECK)
            return true;
    return false;
}

/* The plan, what its steps will note, and each request's body once more, since libcurl copies it. */
static size_t bytes_of(const struct pass *p)
{
    enum { NOTES_BYTES = 256 }; /* of an action: what is expected of it, the options of a delete */
    size_t bytes = p->arena.used_bytes + (size_t)p->plan.n_actions * NOTES_BYTES;

    for (int i = 0; i < p->plan.n_actions; i++)
        bytes += p->plan.actions[i].body ? strlen(p->plan.actions[i].body) : 0;
    return bytes;
}

/* While requests of its namespace wait for each other, pods of all jobs come before the statuses of any. Planned again
 * later it may tell more at once. */
static bool is_put_off(struct pass *p, struct keystate *k)
{
    struct controller *c = p->c;
    bool wait =
        p->plan.may_wait && p->plan.n_actions > 0 && kube_transport_is_full(c->transport, p->target.ns);

    if (wait && !k->put_off_ms)
        k->put_off_ms = now(c);
    if (!wait || now(c) - k->put_off_ms >= PUT_OFF_MAX_MS) {
        k->put_off_ms = 0;
        return false;
    }
    kube_work_after(p->work, PUT_OFF_MS);
    return true;
}

static void plan_and_apply(struct pass *p, const struct trainjob *job, struct keystate *k)
{
    struct controller *c = p->c;
    struct plan_input in;

    snapshot_take(&in, &p->arena, &c->watches, job, k);
    poller_follow(c->poller, &in);
    k->shown = job->status.progress;
    in.job_is_new = !k->status_tried && term_is_newer(&c->term, job->resource_version);
    in.now_ms = wall(c);
    in.tensorboard_image = c->options.tensorboard_image;
    in.launcher_image = c->options.launcher_image;
    in.create_bytes = budget_create_bytes(&c->budget);
    p->n_gone_used = in.n_gone_uids;
    plan_trainjob(&in, &p->arena, &p->plan);
    if (p->plan.refetch || acts_unconfirmed(&p->plan, &in, k)) {
        read_live(p);
        return;
    }
    if (is_put_off(p, k))
        return;
    size_t bytes = bytes_of(p);
    bool room = budget_has_room(&c->budget, job->ns, bytes);
    k->need_bytes = room ? 0 : bytes;
    k->need_create = in.create_bytes;
    k->need_generation = job->generation;
    if (!room) {
        kube_work_after(p->work, NO_ROOM_MS);
    } else {
        k->status_tried |= p->plan.n_actions > 0 && p->plan.actions[0].kind == ACTION_STATUS;
        budget_take(&c->budget, &p->share, p->target.ns, bytes);
        p->apply = apply_new(c->transport, c->recorder, &p->target, &p->plan, &p->arena, on_applied, p);
        apply_run(p->apply);
    }
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
    struct keystate *k = state_of(c, uid);
    if (still_lacks_room(c, k, cached)) {
        kube_work_after(w, NO_ROOM_MS);
        return;
    }
    bool visible = keystate_visible(k, &c->watches, cached->resource_version);
    if (!visible && now(c) < k->expected_until_ms) {
        kube_work_after(w, k->expected_until_ms - now(c));
        return;
    }
    keystate_expired(k, !visible);
    cleanup_trainjob struct trainjob *job = jobtext_decode(cached, &err);
    if (!job) {
        on_problem(c, "pytorchtrainingjobs", &err);
        kube_work_retry(w, -1);
        return;
    }
    c->counts.passes++;
    struct pass *p = pass_new(c, w, job);
    if (k->read_first || keystate_job_is_old(k, job->resource_version))
        read_live(p);
    else
        plan_and_apply(p, job, k);
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
    watches_add(&c->watches, c->reconciler, options->ns, options->list_pages, on_job_gone);
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
