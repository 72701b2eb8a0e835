/* controller.c - which job is due, its snapshot, its pass, and what follows from the result. */
#include "operator/controller.h"

#include "operator/keystate.h"
#include "operator/snapshot.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KEYS_PER_TURN = 64, PASSES_MAX = 64, STALE_CACHE_MS = 1000, SAME_NAME_MS = 1000 };

struct controller {
    struct loop *loop;
    const struct transport *transport;
    struct recorder *recorder;
    const struct log *log;
    struct controller_options options;
    struct watches *watches;
    struct workqueue *queue;
    struct store *states; /* struct keystate by UID */
    struct loop_task task;
    struct loop_timer timer;
    struct pass *passes; /* under way */
    int n_passes;
    bool leads, draining;
    void (*drained)(void *ctx);
    void *drained_ctx;
    struct controller_counts counts;
};

/* One key being worked on. */
struct pass {
    struct controller *c;
    struct pass *next, **at;
    char uid[APPLY_UID_BYTES];
    struct arena arena;
    struct apply_target target; /* strings in the arena */
    struct plan plan;
    int attempt;
    int n_gone_used;
    struct apply *apply;
    struct kube_call *read; /* the job, live */
};

static int64_t now(const struct controller *c)
{
    return loop_now_ms(c->loop);
}

static int64_t wall(const struct controller *c)
{
    struct clock clock = loop_clock(c->loop);

    return clock.wall_ms(clock.ctx);
}

static void wake(struct controller *c)
{
    loop_task_add(c->loop, &c->task);
}

static void on_changed(void *ctx, const char *uid)
{
    struct controller *c = ctx;

    workqueue_add(c->queue, uid, now(c));
    wake(c);
}

static void on_job_gone(void *ctx, const char *uid)
{
    struct controller *c = ctx;

    (void)uid;
    c->counts.deleted++;
}

static void on_problem(void *ctx, const char *what, const struct err *err)
{
    struct controller *c = ctx;

    log_line(c->log, LOG_WARN, "watch failed", (const char *[]){"resource", what, "error", err->msg, NULL});
}

static struct keystate *state_of(struct controller *c, const char *uid)
{
    const struct store_entry *e = store_get(c->states, "", uid);

    if (!e)
        e = store_put(c->states, "", uid, uid, NULL, keystate_new(uid));
    return e->value;
}

static void log_pass(const struct controller *c, const struct pass *p, enum log_level level, const char *msg,
                     const char *error)
{
    char job[160];
    char attempt[16];

    snprintf(job, sizeof(job), "%s/%s", p->target.ns, p->target.job);
    snprintf(attempt, sizeof(attempt), "%d", p->attempt);
    log_line(c->log, level, msg,
             (const char *[]){"job", job, "uid", p->uid, "attempt", attempt, "error", error, NULL});
}

static struct pass *pass_new(struct controller *c, const struct trainjob *job)
{
    struct pass *p = calloc(1, sizeof(*p));

    if (!p)
        abort();
    p->c = c;
    p->attempt = job->status.attempt;
    snprintf(p->uid, sizeof(p->uid), "%s", job->uid);
    p->target =
        (struct apply_target){arena_strdup(&p->arena, job->ns), arena_strdup(&p->arena, job->name), p->uid};
    p->next = c->passes;
    p->at = &c->passes;
    if (p->next)
        p->next->at = &p->next;
    c->passes = p;
    c->n_passes++;
    return p;
}

static void pass_free(struct pass *p)
{
    *p->at = p->next;
    if (p->next)
        p->next->at = p->at;
    p->c->n_passes--;
    arena_release(&p->arena);
    free(p);
}

static void end_pass(struct pass *p)
{
    struct controller *c = p->c;

    workqueue_done(c->queue, p->uid, now(c));
    pass_free(p);
    wake(c);
    if (c->draining && c->n_passes == 0 && c->drained)
        c->drained(c->drained_ctx);
}

static void requeue(struct controller *c, const char *uid, int64_t in_ms)
{
    workqueue_add_at(c->queue, uid, now(c) + (in_ms > 0 ? in_ms : 0));
}

static void count(struct controller *c, const struct pass *p, const struct apply_result *r)
{
    c->counts.pods_created += (uint64_t)r->pods_created;
    c->counts.pods_deleted += (uint64_t)r->pods_deleted;
    if (!r->status_written)
        return;
    c->counts.created += p->plan.started;
    c->counts.succeeded += p->plan.succeeded;
    c->counts.failed += p->plan.failed;
    c->counts.restarted += p->plan.restarted;
}

static void after_failure(struct pass *p, const struct apply_result *r)
{
    struct controller *c = p->c;

    c->counts.failures++;
    if (r->problem.kind != PROBLEM_NONE) {
        log_pass(c, p, LOG_WARN, "create refused", r->err.msg);
        requeue(c, p->uid, 0); /* to say so in the status */
    } else if (r->wait) {
        requeue(c, p->uid, SAME_NAME_MS);
    } else {
        bool conflict = r->err.kind == ERR_CONFLICT || r->err.kind == ERR_NOT_FOUND;
        log_pass(c, p, conflict ? LOG_DEBUG : LOG_WARN, "pass failed", r->err.msg);
        workqueue_retry(c->queue, p->uid, now(c), r->retry_after_ms > 0 ? now(c) + r->retry_after_ms : 0);
    }
}

static void on_applied(void *ctx, const struct apply_result *r)
{
    struct pass *p = ctx;
    struct controller *c = p->c;
    struct keystate *k = state_of(c, p->uid);

    p->apply = NULL;
    keystate_learn(k, r, watches_job(c->watches, p->uid), p->n_gone_used, wall(c), now(c));
    count(c, p, r);
    if (!r->ok) {
        after_failure(p, r);
    } else {
        workqueue_forget(c->queue, p->uid);
        if (r->checked_stale)
            requeue(c, p->uid, STALE_CACHE_MS);
        else if (r->n_gone_uids || r->status_written || r->n_expected)
            requeue(c, p->uid, 0);
        if (p->plan.requeue_ms)
            requeue(c, p->uid, p->plan.requeue_ms - wall(c));
    }
    end_pass(p);
}

static void on_read(void *ctx, struct kube_reply *reply)
{
    struct pass *p = ctx;
    struct controller *c = p->c;
    const char *version =
        json_str(json_find(reply->object, (const char *[]){"metadata", NULL}), "resourceVersion");

    p->read = NULL;
    if (reply->err) {
        c->counts.failures++;
        log_pass(c, p, LOG_WARN, "reading the job failed", reply->err->msg);
        workqueue_retry(c->queue, p->uid, now(c), 0);
    } else {
        struct keystate *k = state_of(c, p->uid);
        snprintf(k->live_version, sizeof(k->live_version), "%s", version ? version : "");
        k->status_version[0] = '\0';
        watches_put_job(c->watches, reply->object);
        requeue(c, p->uid, 0);
    }
    end_pass(p);
}

static void read_live(struct pass *p)
{
    struct kube_request r = {
        .verb = KUBE_GET, .resource = &TRAINJOBS, .ns = p->target.ns, .name = p->target.job};
    struct err err;

    p->read = kube_call_start(p->c->transport, &r, on_read, p, &err);
    if (p->read)
        return;
    log_pass(p->c, p, LOG_WARN, "reading the job failed", err.msg);
    workqueue_retry(p->c->queue, p->uid, now(p->c), 0);
    end_pass(p);
}

static void work_on(struct controller *c, const char *key)
{
    const struct trainjob *job = watches_job(c->watches, key);
    struct plan_input in;

    if (!job) {
        store_remove(c->states, "", key, NULL);
        workqueue_forget(c->queue, key);
        workqueue_done(c->queue, key, now(c));
        return;
    }
    struct keystate *k = state_of(c, key);
    bool visible = keystate_visible(k, c->watches, job);
    if (!visible && now(c) < k->expected_until_ms) {
        workqueue_add_at(c->queue, key, k->expected_until_ms);
        workqueue_done(c->queue, key, now(c));
        return;
    }
    c->counts.passes++;
    struct pass *p = pass_new(c, job);
    if (keystate_job_is_old(k, job)) {
        read_live(p);
        return;
    }
    snapshot_take(&in, &p->arena, c->watches, job, k);
    in.now_ms = wall(c);
    in.tensorboard_image = c->options.tensorboard_image;
    p->n_gone_used = in.n_gone_uids;
    plan_trainjob(&in, &p->arena, &p->plan);
    if (p->plan.refetch) {
        read_live(p);
        return;
    }
    p->apply = apply_new(c->transport, c->recorder, &p->target, &p->plan, &p->arena, on_applied, p);
    apply_run(p->apply);
}

static void work(void *ctx)
{
    struct controller *c = ctx;
    const char *key;

    if (c->draining || !c->leads || !watches_synced(c->watches))
        return;
    for (int n = 0; n < KEYS_PER_TURN && c->n_passes < PASSES_MAX; n++) {
        key = workqueue_take(c->queue, now(c));
        if (!key)
            break;
        work_on(c, key);
    }
    int64_t next = workqueue_next_ms(c->queue);
    if (next <= now(c) && c->n_passes < PASSES_MAX)
        wake(c);
    else if (next != INT64_MAX && next > now(c))
        loop_timer_set(c->loop, &c->timer, next);
}

struct controller *controller_new(struct loop *l, const struct transport *t, struct recorder *r,
                                  const struct log *log, const struct controller_options *options)
{
    struct controller *c = calloc(1, sizeof(*c));
    struct watches_sink sink = {c, on_changed, on_problem, on_job_gone};

    if (!c)
        abort();
    c->loop = l;
    c->transport = t;
    c->recorder = r;
    c->log = log;
    c->options = *options;
    c->leads = !options->waits;
    c->task = (struct loop_task){.run = work, .ctx = c};
    c->timer = (struct loop_timer){.fire = work, .ctx = c};
    c->queue = workqueue_new();
    c->states = store_new(keystate_free);
    c->watches = watches_new(l, t, options->ns, options->seed, &sink);
    return c;
}

void controller_start(struct controller *c)
{
    watches_start(c->watches);
}

void controller_lead(struct controller *c, bool leads)
{
    c->leads = leads;
    if (leads)
        wake(c);
}

void controller_drain(struct controller *c, void (*drained)(void *ctx), void *ctx)
{
    c->draining = true;
    c->drained = drained;
    c->drained_ctx = ctx;
    if (c->n_passes == 0)
        drained(ctx);
}

void controller_free(struct controller *c)
{
    if (!c)
        return;
    while (c->passes) {
        struct pass *p = c->passes;
        apply_cancel(p->apply);
        kube_call_cancel(p->read);
        pass_free(p);
    }
    loop_task_cancel(c->loop, &c->task);
    loop_timer_cancel(c->loop, &c->timer);
    watches_free(c->watches);
    workqueue_free(c->queue);
    store_free(c->states);
    free(c);
}

const struct watches *controller_watches(const struct controller *c)
{
    return c->watches;
}

struct controller_counts controller_counts(const struct controller *c)
{
    return c->counts;
}

struct workqueue_stats controller_queue(const struct controller *c)
{
    return workqueue_stats(c->queue);
}
