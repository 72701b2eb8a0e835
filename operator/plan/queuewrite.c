/* queuewrite.c - the actions on the Workloads of a job: create, adopt, change, release, finish, delete. */
#include "operator/plan/queuewrite.h"

#include "common/clock.h"
#include "operator/plan/desired.h"
#include "operator/plan/queue.h"
#include "operator/plan/queuespec.h"

#include <string.h>

enum { DEFAULT_GRACE_S = 30, REMOTE_END_S = 60, ADOPTED_BYTES = 3 << 19 };

/* How long the pods of an evicted job may take to end; then its worker cluster is lost. */
static int64_t longest_end_ms(const struct trainjob_spec *spec)
{
    int64_t longest_s = 0;

    for (int t = 0; t < spec->n_replica_specs; t++) {
        int64_t s = json_i64(cJSON_GetObjectItemCaseSensitive(spec->replica_specs[t].template, "spec"),
                             "terminationGracePeriodSeconds", DEFAULT_GRACE_S);
        longest_s = s > longest_s ? s : longest_s;
    }
    return (longest_s + REMOTE_END_S) * 1000;
}

static bool is_active_remotely(struct planner *p)
{
    bool shown = queue_shows_pods(&p->job->status);

    if (!shown || !p->queue.workload || !workload_is_evicted(p->queue.workload)) {
        p->out->seen.evicted_ms = 0;
        return shown;
    }
    if (!p->out->seen.evicted_ms)
        p->out->seen.evicted_ms = p->now_ms;
    return !planner_is_due(p, p->out->seen.evicted_ms + longest_end_ms(p->spec));
}

static struct action *edit(struct planner *p, struct action_list *list, const struct workload *w,
                           enum action_edit what)
{
    struct action *act = planner_on(p, list, ACTION_EDIT, CHILD_WORKLOAD, w->name, w->uid);

    act->edit = what;
    act->bytes = w->bytes;
    act->version = arena_strdup(p->a, w->version);
    act->body = what == EDIT_SPEC ? p->queue.patch : NULL;
    return act;
}

/* One condition has one manager: an apply removes what the same manager applied before and leaves out now. */
static void apply(struct planner *p, struct action_list *list, enum workload_condition_type type, bool on,
                  const char *reason, const char *message)
{
    const struct workload *w = p->queue.workload;
    const char *name = workload_condition_name(type);
    cleanup_json cJSON *text = cJSON_CreateString(message);
    char now[CLOCK_RFC3339_BYTES];
    struct action *act = planner_on(p, list, ACTION_APPLY, CHILD_WORKLOAD, w->name, w->uid);

    clock_rfc3339(p->now_ms, false, now);
    act->manager = arena_printf(p->a, "ptj-operator-%s", name);
    act->body = arena_printf(
        p->a,
        "{\"apiVersion\":\"" WORKLOAD_API_VERSION "\",\"kind\":\"Workload\",\"metadata\":{\"name\":\"%s\","
        "\"namespace\":\"%s\",\"uid\":\"%s\"},\"status\":{\"conditions\":[{\"type\":\"%s\",\"status\":\"%s\","
        "\"reason\":\"%s\",\"message\":%s,\"lastTransitionTime\":\"%s\"}]}}",
        w->name, w->ns, w->uid, name, on ? "True" : "False", reason, json_print(text, p->a), now);
}

/* Finalizers of others stay. */
static void remove_finalizer(struct planner *p, const struct workload *w)
{
    if (w->finalizer)
        planner_on(p, &p->workloads, ACTION_PATCH, CHILD_WORKLOAD, w->name, w->uid)->body =
            arena_printf(p->a, "{\"metadata\":{\"uid\":\"%s\",\"resourceVersion\":\"%s\",\"finalizers\":%s}}",
                         w->uid, w->version, w->other_finalizers);
}

/* A deleted Workload loses its finalizer, any other is deleted. */
static void remove_workload(struct planner *p, const struct workload *w)
{
    if (!w->deleting)
        (void)planner_on(p, &p->workloads, ACTION_DELETE, CHILD_WORKLOAD, w->name, w->uid);
    else
        remove_finalizer(p, w);
}

/* Whether a write of the Workload was refused, and is not due again. */
static bool is_refused_for_now(struct planner *p)
{
    const struct plan_problem *problem = &p->in->problem;

    return problem->kind != PROBLEM_NONE && problem->child == CHILD_WORKLOAD &&
           !planner_is_due(p, problem->retry_ms);
}

static void create(struct planner *p)
{
    struct queuespec want;

    queuespec_read(p, &want);
    (void)planner_create(p, &p->workloads, CHILD_WORKLOAD, queue_workload_name(p->a, p->job),
                         queuespec_workload(p, &want));
}

static void adopt(struct planner *p)
{
    struct action *act = planner_add(p, &p->workloads, ACTION_EDIT);
    cleanup_json cJSON *meta = cJSON_CreateObject();

    desired_owner(p->job, meta);
    cJSON_AddStringToObject(cJSON_AddObjectToObject(meta, "labels"), WORKLOAD_GROUP "/job-uid", p->job->uid);
    act->child = CHILD_WORKLOAD;
    act->name = queue_workload_name(p->a, p->job);
    act->edit = EDIT_ADOPT;
    act->bytes = ADOPTED_BYTES;
    act->body = json_print(meta, p->a);
}

/* The end of the job. Kueue frees the quota when the Workload is Finished. The finalizer is removed from the next
 * version. */
static void finish(struct planner *p, const struct workload *w)
{
    bool good = p->st.phase == JOB_SUCCEEDED;

    if (!workload_is(w, WORKLOAD_FINISHED) && !w->deleting)
        apply(p, &p->workloads, WORKLOAD_FINISHED, true, good ? "Succeeded" : "Failed",
              good ? "The job has succeeded" : "The job has failed");
    else
        remove_finalizer(p, w);
}

static void report_ready(struct planner *p)
{
    const struct workload *w = p->queue.workload;
    const struct workload_condition *c = &w->conditions[WORKLOAD_PODS_READY];
    bool recovers = strcmp(c->reason, "WaitForRecovery") == 0;
    int done = 0;

    for (int i = 0; i < p->n_slots; i++) {
        const struct pod *pod = p->slots[i].pod;
        done += (pod && pod_is_running(pod)) || planner_slot_done(&p->slots[i]);
    }
    bool ready = p->queue.remote ? p->st.conditions[COND_RUNNING].state == COND_TRUE
                                 : done == p->n_slots || (p->spec->elastic.enabled && planner_gang_runs(p));
    if (ready && c->state != COND_TRUE)
        apply(p, &p->ready, WORKLOAD_PODS_READY, true, recovers ? "Recovered" : "Started",
              "All pods are ready or have succeeded");
    else if (!ready && c->state == COND_TRUE)
        apply(p, &p->ready, WORKLOAD_PODS_READY, false, "WaitForRecovery", "A pod is being replaced");
}

/* Of an admitted job. No refusal of a write to its Workload keeps a pod from being created. One write: each needs
 * the version before it. */
static void act_on_admitted(struct planner *p)
{
    report_ready(p);
    if (p->ready.n == 0 && p->queue.patch && queuespec_may_edit(p))
        edit(p, &p->ready, p->queue.workload, EDIT_SPEC)->keep = true;
}

static void act_on_own(struct planner *p, bool active)
{
    const struct workload *w = p->queue.workload;

    if (p->queue.verdict != QUEUE_WAIT && (!w || p->job->spec_error))
        return;
    if (p->queue.verdict != QUEUE_WAIT)
        act_on_admitted(p);
    else if (p->queue.patch && !is_refused_for_now(p) && queuespec_may_edit(p))
        edit(p, &p->ready, w, EDIT_SPEC); /* last: if it is refused, nothing else waits for it */
    if (active && (!p->queue.remote || p->queue.step == QUEUE_STEP_RELEASE))
        return; /* the status may show pods for ever of a Workload that is gone: MultiKueue ends them */
    if (p->queue.step == QUEUE_STEP_CREATE && !is_refused_for_now(p))
        create(p);
    else if (p->queue.step == QUEUE_STEP_ADOPT && !is_refused_for_now(p))
        adopt(p);
    else if (p->queue.step == QUEUE_STEP_RELEASE)
        edit(p, &p->workloads, w, EDIT_RELEASE);
    else if (p->queue.step == QUEUE_STEP_DELETE && w && queuespec_may_queue_again(p, w))
        remove_workload(p, w);
    else if (p->queue.step == QUEUE_STEP_FAIL)
        apply(p, &p->workloads, WORKLOAD_FINISHED, true, QUEUE_REASON_FAILED, p->queue.message);
    else if (p->queue.step == QUEUE_STEP_OUT_OF_SYNC)
        apply(p, &p->workloads, WORKLOAD_FINISHED, true, "OutOfSync",
              "The job is not as its Workload any more");
}

void queuewrite_act(struct planner *p)
{
    const struct plan_queue *q = &p->in->queue;
    bool over = jobstatus_finished(&p->st);
    bool active = p->queue.remote ? is_active_remotely(p) : queue_has_active_pods(p->in);
    /* The job names another Workload than the one whose quota its pods use. */
    bool ends = active && !over && p->queue.verdict == QUEUE_WAIT && !p->queue.workload;

    if (q->mode != QUEUE_ON)
        return;
    for (int i = 0; i < q->n_workloads; i++) {
        const struct workload *w = q->workloads[i];
        bool own = w == p->queue.workload;
        bool finished = p->queue.remote && workload_is(w, WORKLOAD_FINISHED); /* by MultiKueue */
        if (own && (finished || (over && !active)))
            finish(p, w);
        else if ((!own && !(ends && workload_is_reserved(w))) || (!over && p->queue.verdict == QUEUE_FREE))
            remove_workload(p, w);
    }
    if (!over && p->queue.verdict != QUEUE_FREE)
        act_on_own(p, active);
}

static void end_pods(struct planner *p)
{
    for (int i = 0; i < p->in->n_pods; i++) {
        const struct pod *pod = p->in->pods[i];
        if (queue_is_active(pod) && !pod->deletion_ms)
            (void)planner_on(p, &p->workloads, ACTION_DELETE, CHILD_POD, pod->name, pod->uid);
    }
}

/* A job that is being deleted may stay for long, by a finalizer of somebody else: others wait for its quota. */
void plan_orphans(const struct plan_input *in, struct arena *a, struct plan *out)
{
    struct planner p = {.in = in, .out = out, .a = a, .now_ms = in->now_ms};
    bool active = queue_has_active_pods(in);

    *out = (struct plan){0};
    if (in->job && !planner_is_ours(in->job) && !planner_is_remote(in->job))
        return;
    for (int i = 0; i < in->queue.n_workloads; i++) {
        const struct workload *w = in->queue.workloads[i];
        if (!active || !(w->deleting || in->job))
            remove_workload(&p, w);
        else if (workload_is_evicted(w))
            end_pods(&p);
    }
    out->actions = p.workloads.items;
    out->n_actions = p.workloads.n;
}
