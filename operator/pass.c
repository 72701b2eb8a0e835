/* pass.c - one pass over one job: take a snapshot, plan, apply, learn from the answers, schedule the next pass. */
#include "operator/pass.h"

#include "common/memory.h"
#include "operator/apply.h"
#include "operator/request.h"
#include "operator/snapshot.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    STALE_CACHE_MS = 1000,
    SAME_NAME_MS = 1000,
    PUT_OFF_MS = 500,
    PUT_OFF_MAX_MS = 5000,
    REST_TIMES = 10,
    REST_MAX_MS = 1000,
};

/* What goes with one key while it is worked on. */
struct pass {
    struct controller *c;
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

/* NULL: this process does not lead, or the job was removed from the cache, since the pass began. The pass teaches nothing then.
 * Its key comes again when this process leads, or when the job does. */
static struct keystate *state_of(const struct pass *p)
{
    const struct kube_store_entry *e = kube_store_get(p->c->states, "", p->target.uid);
    struct keystate *k = e ? e->value : NULL;

    return k && k->pass == p && kube_reconciler_term(p->c->reconciler) ? k : NULL;
}

static bool may_go_on(void *ctx)
{
    const struct pass *p = ctx;
    const struct jobtext *job = watches_job(&p->c->watches, p->target.uid);

    return job && !job->deleting && state_of(p);
}

static struct pass *pass_new(struct controller *c, struct kube_work *w, const struct trainjob *job)
{
    struct pass *p = memory_must(calloc(1, sizeof(*p)));

    p->c = c;
    p->work = w;
    p->begun_ms = controller_now(c);
    p->attempt = job->status.attempt;
    p->generation = job->generation;
    p->version = arena_strdup(&p->names, job->resource_version);
    p->target = (struct apply_target){arena_strdup(&p->names, job->ns),
                                      arena_strdup(&p->names, job->name),
                                      arena_strdup(&p->names, job->uid),
                                      may_go_on,
                                      p,
                                      false};
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
        count_wait(&c->counts.first_pod, waits->first_pod_ms, controller_wall(c));
    c->counts.pods_created += (uint64_t)r->pods_created;
    c->counts.pods_deleted += (uint64_t)r->pods_deleted;
    if (!r->status_written)
        return;
    c->counts.created += p->plan.started;
    c->counts.succeeded += p->plan.succeeded;
    c->counts.failed += p->plan.failed;
    c->counts.restarted += p->plan.restarted;
    count_wait(&c->counts.running, waits->running_ms, controller_wall(c));
    count_wait(&c->counts.running_again, waits->running_again_ms, controller_wall(c));
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

    if (r->err.msg[0])
        log_pass(p->c, p, LOG_WARN, "pods are deleted, and their logs with them: they may not be patched",
                 &r->err);
    if (p->plan.requeue_ms)
        delay = p->plan.requeue_ms - controller_wall(p->c);
    if (r->checked_stale)
        delay = delay < STALE_CACHE_MS ? delay : STALE_CACHE_MS;
    else if (r->n_gone_uids || r->status_written || r->n_expected)
        delay = 0;
    if (delay == INT64_MAX)
        kube_work_done(p->work);
    else
        kube_work_after(p->work, delay);
}

static void on_applied(void *ctx, const struct apply_result *r)
{
    struct pass *p = ctx;
    struct controller *c = p->c;

    p->apply = NULL;
    struct keystate *k = state_of(p);
    if (!k) {
        kube_work_done(p->work);
        return;
    }
    if (r->status_written)
        k->unreadable_told = p->plan.unreadable;
    bool told = keystate_learn(
        k, r,
        &(struct keystate_pass){p->generation, p->n_gone_used, controller_now(c) - p->begun_ms, p->version,
                                p->plan.pods_first, p->plan.progressed, p->plan.progress_only,
                                p->plan.slow_rank, p->plan.creates_wait},
        controller_wall(c), controller_now(c));
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

    struct keystate *k = state_of(p);
    if (!k) {
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
    k->read_first = false;
    k->refused_version[0] = '\0';
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
        k->put_off_ms = controller_now(c);
    if (!wait || controller_now(c) - k->put_off_ms >= PUT_OFF_MAX_MS) {
        k->put_off_ms = 0;
        return false;
    }
    kube_work_after(p->work, PUT_OFF_MS);
    return true;
}

static void plan_and_apply(struct pass *p, const struct trainjob *job, struct keystate *k)
{
    struct controller *c = p->c;
    int64_t mono_to_wall_ms = controller_wall(c) - controller_now(c);
    struct plan_input in;

    snapshot_take(&in, &p->arena, &c->watches, job, k);
    poller_follow(c->poller, &in);
    k->shown = job->status.progress;
    in.job_is_new = !k->status_tried && term_is_newer(&c->term, job->resource_version);
    in.now_ms = controller_wall(c);
    in.status_written_ms += in.status_written_ms ? mono_to_wall_ms : 0;
    in.problem.retry_ms += mono_to_wall_ms;
    in.tensorboard_image = c->options.tensorboard_image;
    in.launcher_image = c->options.launcher_image;
    in.create_bytes = budget_create_bytes(&c->budget);
    p->n_gone_used = in.n_gone_uids;
    plan_trainjob(&in, &p->arena, &p->plan);
    k->seen = p->plan.seen;
    /* So that events of a large job, each of which plans all of it, do not fill the thread. */
    int64_t took_ms = controller_mono(c) - c->begun_ms;
    k->rest_until_ms =
        controller_mono(c) + (took_ms < REST_MAX_MS / REST_TIMES ? took_ms * REST_TIMES : REST_MAX_MS);
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
        kube_work_after(p->work, PASS_NO_ROOM_MS);
    } else {
        k->status_tried |= p->plan.n_actions > 0 && p->plan.actions[0].kind == ACTION_STATUS;
        budget_take(&c->budget, &p->share, p->target.ns, bytes);
        p->target.ignored_told = k->ignored_generation && k->ignored_generation == job->generation;
        p->apply = apply_new(c->transport, c->recorder, &p->target, &p->plan, &p->arena, on_applied, p);
        apply_run(p->apply);
    }
}

void pass_begin(struct controller *c, struct kube_work *w, const struct trainjob *job, struct keystate *k)
{
    struct pass *p = pass_new(c, w, job);

    c->counts.passes++;
    k->pass = p;
    if (k->read_first || keystate_job_is_old(k, job->resource_version) ||
        strcmp(k->refused_version, job->resource_version) == 0)
        read_live(p);
    else
        plan_and_apply(p, job, k);
}
