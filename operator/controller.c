/* controller.c - schedule the reconciles of jobs, and run one: collect input, plan, act, record, requeue. */
#include "operator/controller.h"

#include "common/backoff.h"
#include "common/memory.h"
#include "common/random.h"
#include "operator/budget.h"
#include "operator/jobmemory.h"
#include "operator/places.h"
#include "operator/plan/queue.h"
#include "operator/plan/statusprogress.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    NO_ROOM_MS = 250, /* delay of a reconcile that does not fit into the budget */
    LOOK_AGAIN_MS = 1000,
    LOOK_AGAIN_MAX_MS = 60000,
    SAME_NAME_MS = 1000,
    POSTPONE_MS = 500,
    POSTPONE_MAX_MS = 5000,
    REST_TIMES = 10,
    REST_MAX_MS = 1000,
};

/* The state of one term of leadership, besides the reconciles in progress, which the reconciler owns. */
struct term {
    struct kube_store *memories; /* struct jobmemory by UID */
    struct poller *poller;       /* of the running jobs */
    struct budget budget;        /* of the reconciles in progress */
    int64_t begun_ms;
    uint64_t deployments; /* lists of Deployments begun before this term */
    uint64_t workloads;   /* the same of Workloads */
};

struct controller {
    struct kube_loop *loop;
    const struct kube_transport *transport;
    struct kube_recorder *recorder;
    const struct log *log;
    struct controller_options options;
    struct kube_reconciler *reconciler;
    struct watches watches;
    struct queues *queues;
    struct places *places;
    struct term *term; /* NULL: this process does not lead */
    struct controller_counts counts;
    int native_version; /* actions_target.native_version */
    int64_t begun_ms;   /* by mono_ms: when the current key was taken */
    int64_t begun_us;   /* the same by cpu_us */
};

/* One reconcile in progress. */
struct pass {
    struct controller *c;
    struct kube_work *work;
    struct jobmemory *memory; /* NULL: the job is gone; record nothing */
    struct arena names;
    struct actions_target target; /* strings in `names` */
    struct arena arena;           /* of the plan and its requests */
    struct budget_share share;
    int64_t begun_ms;
    struct plan plan;
    int attempt;
    int64_t generation;  /* of the planned spec */
    const char *version; /* of the job */
    struct actions *actions;
};

static int64_t now_ms(const struct controller *c)
{
    return kube_loop_now_ms(c->loop);
}

/* The current time by the clock of now_ms, which is read once per turn of the loop. */
static int64_t mono_ms(const struct controller *c)
{
    return kube_loop_clock(c->loop).mono_ms(kube_loop_clock(c->loop).ctx);
}

static int64_t cpu_us(const struct controller *c)
{
    return kube_loop_clock(c->loop).cpu_us(kube_loop_clock(c->loop).ctx);
}

static int64_t wall_ms(const struct controller *c)
{
    return kube_loop_wall_ms(c->loop);
}

/* NULL: nothing is remembered of this job, or this process does not lead. */
static struct jobmemory *memory_if_any(const struct controller *c, const char *uid)
{
    const struct kube_store_entry *e = c->term ? kube_store_get(c->term->memories, "", uid) : NULL;

    return e ? e->value : NULL;
}

static struct jobmemory *memory_of(const struct controller *c, const char *uid)
{
    struct jobmemory *m = memory_if_any(c, uid);

    return m ? m : kube_store_put(c->term->memories, "", uid, uid, NULL, jobmemory_new())->value;
}

static void forget(const struct controller *c, const char *uid)
{
    kube_store_remove(c->term->memories, "", uid);
    poller_forget(c->term->poller, uid);
}

static void on_problem(void *ctx, const char *what, const struct err *err)
{
    struct controller *c = ctx;

    log_line(c->log, LOG_WARN, "watch failed", (const char *[]){"resource", what, "error", err->msg, NULL});
}

static void log_pass(const struct pass *p, enum log_level level, const char *msg, const struct err *err)
{
    char job[160];
    char attempt[16];

    snprintf(job, sizeof(job), "%s/%s", p->target.ns, p->target.job);
    snprintf(attempt, sizeof(attempt), "%d", p->attempt);
    log_line(p->c->log, level, msg,
             (const char *[]){"job", job, "uid", p->target.uid, "attempt", attempt, "error", err->msg, "kind",
                              err_kind_name(err->kind), NULL});
}

/* ---- one reconcile */

static void pass_free(void *data)
{
    struct pass *p = data;

    if (p->memory)
        p->memory->holder = NULL;
    actions_cancel(p->actions);
    budget_give(&p->c->term->budget, &p->share);
    arena_release(&p->arena);
    arena_release(&p->names);
    free(p);
}

/* False: the job is gone, or its user has changed the spec or deleted it. */
static bool may_go_on(void *ctx)
{
    const struct pass *p = ctx;
    const struct jobtext *job = p->memory ? watches_job(&p->c->watches, p->target.uid) : NULL;

    return job && !job->deleting && job->generation == p->generation;
}

/* Without a job: for what a job that is gone, or being deleted, left in a queue. */
static struct pass *pass_new(struct controller *c, struct kube_work *w)
{
    struct pass *p = memory_must(calloc(1, sizeof(*p)));

    p->c = c;
    p->work = w;
    p->target = (struct actions_target){.ns = arena_strdup(&p->names, kube_work_ns(w)),
                                        .job = "",
                                        .uid = arena_strdup(&p->names, kube_work_key(w)),
                                        .now_ms = wall_ms(c)};
    kube_work_attach(w, p, pass_free);
    return p;
}

static struct pass *pass_new_of(struct controller *c, struct kube_work *w, const struct trainjob *job,
                                struct jobmemory *m)
{
    struct pass *p = pass_new(c, w);

    p->memory = m;
    m->holder = &p->memory;
    p->begun_ms = now_ms(c);
    p->attempt = job->status.attempt;
    p->generation = job->generation;
    p->version = arena_strdup(&p->names, job->resource_version);
    p->target.job = arena_strdup(&p->names, job->name);
    p->target.may_go_on = may_go_on;
    p->target.ctx = p;
    p->target.native_version = &c->native_version;
    p->target.ignored_reported = m->ignored_generation && m->ignored_generation == job->generation;
    p->target.refused_reported = jobmemory_refused(m, job->generation, now_ms(c));
    c->counts.passes++;
    return p;
}

static void count_wait(struct histogram *h, int64_t since_ms, int64_t until_ms)
{
    if (since_ms)
        histogram_add(h, LATENCY_BOUNDS, until_ms - since_ms);
}

static void count(const struct pass *p, const struct actions_result *r)
{
    struct controller_counts *n = &p->c->counts;
    const struct plan_waits *waits = &p->plan.waits;

    if (r->pods_created)
        count_wait(&n->first_pod, waits->first_pod_ms, wall_ms(p->c));
    n->pods_created += (uint64_t)r->pods_created;
    n->pods_deleted += (uint64_t)r->pods_deleted;
    n->failures += !r->ok;
    if (!r->status_written)
        return;
    n->created += p->plan.started;
    n->succeeded += p->plan.succeeded;
    n->failed += p->plan.failed;
    n->restarted += p->plan.restarted;
    count_wait(&n->running, waits->running_ms, wall_ms(p->c));
    count_wait(&n->running_again, waits->running_again_ms, wall_ms(p->c));
}

static bool is_conflict(const struct err *err)
{
    return err->kind == ERR_CONFLICT || err->kind == ERR_NOT_FOUND;
}

static void log_failure(const struct pass *p, const struct err *err)
{
    log_pass(p, is_conflict(err) ? LOG_DEBUG : LOG_WARN, "reconcile failed", err);
}

static void after_failure(struct pass *p, const struct actions_result *r, bool reported)
{
    if (reported) {
        log_pass(p, LOG_WARN, "create refused", &r->err);
        kube_work_after(p->work, 0); /* to report it in the status */
    } else if (r->wait) {
        kube_work_after(p->work, SAME_NAME_MS);
    } else {
        int64_t soon_ms = jobmemory_webhook_ms(p->memory, now_ms(p->c));
        log_failure(p, &r->err);
        if (soon_ms > r->retry_after_ms && !is_conflict(&r->err))
            kube_work_after(p->work, soon_ms);
        else
            kube_work_retry(p->work, r->retry_after_ms);
    }
}

/* The watch events of our writes queue the key again. If there will be none, queue it here. */
static void after_success(struct pass *p, const struct actions_result *r)
{
    int64_t delay = INT64_MAX;

    if (r->err.msg[0])
        log_pass(p, LOG_WARN, "pods are deleted, and so their logs, since the operator may not patch them",
                 &r->err);
    if (p->plan.requeue_ms)
        delay = p->plan.requeue_ms - wall_ms(p->c);
    if (p->plan.n_actions > 0) {
        int64_t again =
            backoff_delay_ms(LOOK_AGAIN_MS, LOOK_AGAIN_MAX_MS, p->memory->unseen ? p->memory->unseen - 1 : 0);
        delay = delay < again ? delay : again;
    }
    if (delay == INT64_MAX)
        kube_work_done(p->work);
    else
        kube_work_after(p->work, delay);
}

/* Without a job's memory. A delete of what seemed to be gone has no event. */
static void after_orphans(struct pass *p, const struct actions_result *r)
{
    if (!r->ok) {
        log_failure(p, &r->err);
        kube_work_retry(p->work, r->retry_after_ms);
    } else if (p->plan.n_actions > 0) {
        kube_work_after(p->work, LOOK_AGAIN_MAX_MS);
    } else {
        kube_work_done(p->work);
    }
}

static void on_done(void *ctx, const struct actions_result *r)
{
    struct pass *p = ctx;
    struct controller *c = p->c;

    p->actions = NULL;
    if (!p->memory) {
        after_orphans(p, r);
        return;
    }
    bool reported = jobmemory_record(
        p->memory, &c->watches, r,
        &(struct jobmemory_pass){&p->plan, p->version, p->generation, now_ms(c) - p->begun_ms}, wall_ms(c),
        now_ms(c));
    count(p, r);
    if (r->ok)
        after_success(p, r);
    else
        after_failure(p, r, reported);
}

/* The plan, the notes of its actions, and each body twice, since libcurl copies it; that of an edit is made
 * later. */
static size_t bytes_of(const struct pass *p)
{
    enum { NOTES_BYTES = 256 }; /* per action: the options of a delete */
    size_t bytes = p->arena.used_bytes + (size_t)p->plan.n_actions * NOTES_BYTES;

    for (int i = 0; i < p->plan.n_actions; i++)
        bytes +=
            (p->plan.actions[i].body ? strlen(p->plan.actions[i].body) : 0) + 2 * p->plan.actions[i].bytes;
    return bytes;
}

/* While requests of its namespace queue, creates of pods go before writes of statuses. A later plan may also
 * combine several status writes. */
static bool is_postponed(struct pass *p)
{
    struct jobmemory *m = p->memory;
    int64_t now = now_ms(p->c);
    bool wait =
        p->plan.may_wait && p->plan.n_actions > 0 && kube_transport_is_full(p->c->transport, p->target.ns);

    if (wait && !m->postponed_ms)
        m->postponed_ms = now;
    if (wait && now - m->postponed_ms < POSTPONE_MAX_MS)
        return true;
    m->postponed_ms = 0;
    return false;
}

/* Whether the job's version is in doubt and the plan does not begin with a write of the job. Such a write
 * carries the version, so the server checks it. */
static bool is_doubtful(const struct pass *p)
{
    const struct action *first = p->plan.actions;

    return p->plan.n_actions > 0 && first->kind != ACTION_STATUS && first->child != CHILD_JOB &&
           jobmemory_doubts(p->memory, &p->c->watches, p->version);
}

/* Whether the last plan would still not fit, which holds if neither the spec nor the limit of pod bodies
 * changed. */
static bool still_lacks_room(const struct controller *c, const struct jobmemory *m, const struct jobtext *job)
{
    return m->need_bytes && m->need_generation == job->generation &&
           m->need_create <= budget_create_bytes(&c->term->budget) &&
           !budget_has_room(&c->term->budget, job->ns, m->need_bytes);
}

static bool finds_room(struct pass *p, size_t create_bytes)
{
    size_t bytes = bytes_of(p);
    bool room = budget_has_room(&p->c->term->budget, p->target.ns, bytes);

    if (p->memory) {
        p->memory->need_bytes = room ? 0 : bytes;
        p->memory->need_create = create_bytes;
        p->memory->need_generation = p->generation;
    }
    if (room)
        budget_take(&p->c->term->budget, &p->share, p->target.ns, bytes);
    return room;
}

/* How long the cache of Deployments has been incomplete or late for a job with TensorBoard; 1 where there is none. 0: it is complete. */
static int64_t tensorboard_unseen_for(const struct controller *c, struct jobmemory *m,
                                      const struct trainjob *job)
{
    bool seen = watches_listed(&c->watches, CHILD_DEPLOYMENT, c->term->deployments) &&
                jobmemory_is_shown(m, &c->watches, CHILD_DEPLOYMENT);
    bool awaited = !seen && (job->spec.tensorboard.present || job->status.tensorboard.present);

    if (!awaited || !m->tb_unseen_since_ms)
        m->tb_unseen_since_ms = awaited ? now_ms(c) : 0;
    int64_t lasted_ms = awaited ? now_ms(c) - m->tb_unseen_since_ms : 0;
    return seen ? 0 : lasted_ms > 0 ? lasted_ms : 1;
}

static enum plan_queue_mode queue_mode(const struct controller *c)
{
    bool listed = watches_listed(&c->watches, CHILD_WORKLOAD, c->term->workloads) &&
                  watches_settings_listed(&c->watches);

    if (!queues_are_known(c->queues))
        return QUEUE_UNSEEN;
    return !queues_are_served(c->queues) ? QUEUE_OFF : listed ? QUEUE_ON : QUEUE_UNSEEN;
}

static const char *new_key(struct arena *a)
{
    unsigned long long r[4];

    random_fill(r, sizeof(r));
    return arena_printf(a, "%016llx%016llx%016llx%016llx", r[0], r[1], r[2], r[3]);
}

static void fill_input(const struct controller *c, const struct trainjob *job, struct jobmemory *m,
                       struct arena *a, struct plan_input *in)
{
    int64_t mono_to_wall_ms = wall_ms(c) - now_ms(c);

    *in = (struct plan_input){
        .now_ms = wall_ms(c),
        .status_first = m->lost || m->waits > 0 || m->unseen > 0,
        .tb_unseen_for_ms = c->options.tensorboard_image ? tensorboard_unseen_for(c, m, job) : 0,
        .unreadable_reported = strcmp(m->unreadable_reported, job->resource_version) == 0,
        .problem = jobmemory_problem(m, job->generation),
        .status_written_ms =
            (m->status_written_ms ? m->status_written_ms : c->term->begun_ms) + mono_to_wall_ms,
        .seen = m->seen,
        .progress = &m->progress,
        .create_bytes = budget_create_bytes(&c->term->budget),
        .tensorboard_image = c->options.tensorboard_image,
        .launcher_image = c->options.launcher_image,
    };
    in->problem.retry_ms += mono_to_wall_ms;
    if (job->queue.name)
        queues_need(c->queues);
    in->queue.mode = queue_mode(c);
    in->queue.place = now_ms(c) - m->place_ms < PLACES_FRESH_MS ? m->place : 0;
    watches_gather_queue(&c->watches, job->ns, job->uid, job->queue.name != NULL, a, in);
    watches_gather(&c->watches, job, a, in);
    in->guards = c->options.guards;
    in->gangs = c->options.gangs;
    in->guards.new_key = c->options.job_keys ? new_key(a) : NULL;
}

/* Each event of a large job plans the whole job: limit the share of the thread that this takes. */
static void set_rest(const struct controller *c, struct jobmemory *m)
{
    int64_t rest_ms = (cpu_us(c) - c->begun_us) * REST_TIMES / 1000;

    m->rest_until_ms = mono_ms(c) + (rest_ms < REST_MAX_MS ? rest_ms : REST_MAX_MS);
}

static void act(struct pass *p, size_t create_bytes)
{
    if (!finds_room(p, create_bytes)) {
        kube_work_put_back(p->work, NO_ROOM_MS);
        return;
    }
    p->actions = actions_new(p->c->transport, p->c->recorder, &p->target, &p->plan, &p->arena, on_done, p);
    actions_run(p->actions);
}

static void find_place(struct pass *p, const struct trainjob *job)
{
    if (p->plan.queued)
        places_need(p->c->places, job->ns, job->queue.name, p->memory->place);
    else
        p->memory->place = 0;
}

static void plan_and_act(struct pass *p, const struct trainjob *job)
{
    struct controller *c = p->c;
    struct jobmemory *m = p->memory;
    struct plan_input in;

    fill_input(c, job, m, &p->arena, &in);
    poller_follow(c->term->poller, &in);
    m->shown = job->status.progress;
    plan_trainjob(&in, &p->arena, &p->plan);
    m->seen = p->plan.seen;
    find_place(p, job);
    set_rest(c, m);
    if (is_doubtful(p))
        kube_work_put_back(p->work, LOOK_AGAIN_MS);
    else if (is_postponed(p))
        kube_work_put_back(p->work, POSTPONE_MS);
    else
        act(p, in.create_bytes);
}

/* ---- scheduling */

/* How long to wait for caches that do not include our last writes, or for another version of a doubted job;
 * 0: no wait. Kinds that take long are listed again. The Deployments only delay TensorBoard's part of the
 * plan. */
static int64_t wait_for_caches(struct controller *c, struct jobmemory *m, const struct jobtext *job)
{
    bool doubted = jobmemory_doubts(m, &c->watches, job->resource_version);
    bool waits = false;

    for (int i = 0; i < CHILD_KINDS; i++) {
        enum child_kind kind = (enum child_kind)i;
        bool shown = jobmemory_is_shown(m, &c->watches, kind);
        if (kind == CHILD_WORKLOAD && !queues_are_served(c->queues))
            continue;
        waits |= !shown && kind != CHILD_DEPLOYMENT;
        if (jobmemory_is_overdue(m, kind, !shown || (doubted && kind == CHILD_JOB), now_ms(c)))
            watches_relist(&c->watches, kind, now_ms(c));
    }
    return waits ? LOOK_AGAIN_MS : jobmemory_rest_ms(m, job->resource_version, now_ms(c));
}

/* How long to wait before planning; 0: plan now. */
static int64_t wait_of(struct controller *c, struct jobmemory *m, const struct jobtext *job)
{
    if (still_lacks_room(c, m, job))
        return NO_ROOM_MS;
    if (c->begun_ms < m->rest_until_ms)
        return m->rest_until_ms - c->begun_ms;
    return wait_for_caches(c, m, job);
}

static void retry_undecoded(struct controller *c, struct kube_work *w, const struct err *err)
{
    on_problem(c, "pytorchtrainingjobs", err);
    kube_work_retry(w, -1);
}

/* Nothing follows when its Workloads are not known: their events add the key again. The quota of pods that we
 * created stays taken before the cache has them. */
static void reconcile_orphans(struct controller *c, struct kube_work *w, const struct jobtext *cached)
{
    struct jobmemory *m = memory_if_any(c, kube_work_key(w));
    int64_t wait_ms = cached && m ? wait_for_caches(c, m, cached) : 0;

    if (wait_ms) {
        kube_work_put_back(w, wait_ms);
        return;
    }
    struct err err;
    cleanup_trainjob struct trainjob *job = cached ? jobtext_decode(cached, &err) : NULL;
    if (cached && !job) {
        retry_undecoded(c, w, &err);
        return;
    }
    struct pass *p = pass_new(c, w);
    struct plan_input in = {.now_ms = wall_ms(c), .job = job};

    watches_gather_queue(&c->watches, p->target.ns, p->target.uid, false, &p->arena, &in);
    watches_gather_pods(&c->watches, p->target.ns, p->target.uid, &p->arena, &in);
    plan_orphans(&in, &p->arena, &p->plan);
    act(p, 0);
}

static bool has_workloads(const struct controller *c, const char *uid)
{
    return c->watches.kinds[CHILD_WORKLOAD] &&
           kube_store_group(watches_children(&c->watches, CHILD_WORKLOAD), uid) != NULL;
}

static void reconcile(void *ctx, struct kube_work *w)
{
    struct controller *c = ctx;
    const char *uid = kube_work_key(w);
    const struct jobtext *cached = watches_job(&c->watches, uid);
    struct err err;

    if (!cached)
        forget(c, uid);
    if ((!cached || cached->deleting) && has_workloads(c, uid)) {
        reconcile_orphans(c, w, cached);
        return;
    }
    /* The second case: an object in another namespace names this job as its owner. */
    if (!cached || strcmp(cached->ns, kube_work_ns(w)) != 0) {
        kube_work_done(w);
        return;
    }
    struct jobmemory *m = memory_of(c, uid);
    c->begun_ms = mono_ms(c);
    c->begun_us = cpu_us(c);
    int64_t wait_ms = wait_of(c, m, cached);
    if (wait_ms) {
        kube_work_put_back(w, wait_ms);
        return;
    }
    cleanup_trainjob struct trainjob *job = jobtext_decode(cached, &err);
    if (!job) {
        retry_undecoded(c, w, &err);
        return;
    }
    plan_and_act(pass_new_of(c, w, job, m), job);
}

static void on_job_gone(void *ctx, const struct kube_store_entry *job)
{
    struct controller *c = ctx;

    if (!c->term)
        return;
    c->counts.deleted++;
    forget(c, job->uid); /* now, since its key may not be taken again before the term ends */
}

/* Plan jobs that wait for their TensorBoard's Deployment. */
static void on_deployments_listed(void *ctx)
{
    struct controller *c = ctx;
    const struct kube_store *jobs = controller_jobs(c);

    for (const struct kube_store_entry *e = kube_store_first(jobs); e; e = kube_store_next(jobs, e)) {
        const struct jobmemory *m = memory_if_any(c, e->uid);
        if (m && m->tb_unseen_since_ms)
            kube_reconciler_add(c->reconciler, e->ns, e->uid);
    }
}

/* Whether a job has a queue, or left one while Kueue was away: its Workload is then deleted when Kueue is back. */
static bool needs_queues(void *ctx)
{
    const struct controller *c = ctx;
    const struct kube_store *jobs = controller_jobs(c);
    const struct kube_store_entry *e = kube_store_first(jobs);

    while (e && !((const struct jobtext *)e->value)->queued)
        e = kube_store_next(jobs, e);
    return e || (c->watches.kinds[CHILD_WORKLOAD] &&
                 kube_store_count(watches_children(&c->watches, CHILD_WORKLOAD)) > 0);
}

/* Plan what concerns a queue. A plan waits until all of its kinds are listed, or for one of the cluster's settings. */
static void plan_queues(void *ctx)
{
    struct controller *c = ctx;
    const struct kube_store *jobs = controller_jobs(c), *workloads = NULL;

    if (c->watches.kinds[CHILD_WORKLOAD])
        workloads = watches_children(&c->watches, CHILD_WORKLOAD);
    for (const struct kube_store_entry *e = kube_store_first(jobs); e; e = kube_store_next(jobs, e))
        if (((const struct jobtext *)e->value)->queued)
            kube_reconciler_add(c->reconciler, e->ns, e->uid);
    for (const struct kube_store_entry *e = workloads ? kube_store_first(workloads) : NULL; e;
         e = kube_store_next(workloads, e))
        kube_reconciler_add(c->reconciler, e->ns, e->group);
}

static void on_setting_changed(void *ctx, const struct kube_store_entry *e)
{
    (void)e;
    plan_queues(ctx);
}

static void watch_queues(struct controller *c)
{
    if (queues_are_served(c->queues) && !c->watches.kinds[CHILD_WORKLOAD])
        watches_add_queues(&c->watches, c->reconciler, c->options.ns, plan_queues, on_setting_changed);
}

/* Kueue was found, or has gone. */
static void on_queues_changed(void *ctx)
{
    watch_queues(ctx);
    plan_queues(ctx);
}

static void on_place(void *ctx, const char *ns, const char *job_uid, int place)
{
    struct controller *c = ctx;
    const struct jobtext *job = watches_job(&c->watches, job_uid);
    struct jobmemory *m = memory_if_any(c, job_uid);

    if (!m || !job || strcmp(job->ns, ns) != 0)
        return;
    m->place_ms = now_ms(c);
    place = queue_shown_place(place);
    if (m->place == place)
        return;
    m->place = place;
    kube_reconciler_add(c->reconciler, ns, job_uid);
}

/* ---- terms */

static void on_answered(void *ctx, const struct poller_target *target,
                        const struct jobprogress_answer *answer)
{
    struct controller *c = ctx;
    struct jobmemory *m = memory_of(c, target->job_uid);

    m->progress.answered = true;
    m->progress.answer = *answer;
    m->progress.attempt = target->attempt;
    if (progress_is_news(&m->progress, &m->shown, wall_ms(c)))
        kube_reconciler_add(c->reconciler, target->ns, target->job_uid);
}

static void begin_term(void *ctx)
{
    struct controller *c = ctx;

    c->term = memory_must(calloc(1, sizeof(*c->term)));
    c->term->memories = kube_store_new(jobmemory_free);
    c->term->begun_ms = now_ms(c);
    c->term->deployments = watches_lists(&c->watches, CHILD_DEPLOYMENT);
    c->term->workloads = watches_lists(&c->watches, CHILD_WORKLOAD);
    c->term->poller =
        poller_new(c->loop, &(struct poller_options){.ctx = c,
                                                     .seed = c->options.seed,
                                                     .answered = on_answered,
                                                     .url = c->options.progress_url ? c->options.progress_url
                                                                                    : podaddress_url});
}

static void end_term(void *ctx)
{
    struct controller *c = ctx;

    c->counts = controller_counts(c);
    poller_free(c->term->poller);
    kube_store_free(c->term->memories);
    free(TAKE(c->term));
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
    c->reconciler = kube_reconciler_new(l, t,
                                        &(struct kube_reconciler_options){.name = "pytorchtrainingjob",
                                                                          .ctx = c,
                                                                          .reconcile = reconcile,
                                                                          .begins = begin_term,
                                                                          .ends = end_term,
                                                                          .problem = on_problem,
                                                                          .seed = options->seed});
    watches_add(&c->watches, c->reconciler, options->ns, on_job_gone,
                options->tensorboard_image ? on_deployments_listed : NULL);
    c->queues = queues_new(l, t, options->kueue, needs_queues, on_queues_changed, c);
    c->places = places_new(l, t, on_place, c);
    watch_queues(c);
    return c;
}

void controller_free(struct controller *c)
{
    if (!c)
        return;
    kube_reconciler_free(c->reconciler);
    queues_free(c->queues);
    places_free(c->places);
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

    counts.polls.out = 0;
    counts.pass_bytes = counts.remembered = 0;
    if (!c->term)
        return counts;
    struct poller_counts polls = poller_counts(c->term->poller);
    counts.polls.ok += polls.ok;
    counts.polls.failed += polls.failed;
    counts.polls.dropped += polls.dropped;
    counts.polls.out = polls.out;
    counts.pass_bytes = c->term->budget.held_bytes;
    counts.remembered = kube_store_count(c->term->memories);
    return counts;
}
