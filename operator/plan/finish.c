/* finish.c - how a job ends, which pods are deleted then and when the job is, and pods that stay Terminating. */
#include "operator/plan/finish.h"

#include "operator/plan/status.h"

enum { TRAINING_GRACE_MS = 30000, KUBELET_WAIT_MS = 600000 };

bool finish_if_succeeded(struct planner *p)
{
    const struct slot *master = &p->slots[0];

    if (!planner_slot_done(master))
        return false;
    status_finish(p, JOB_SUCCEEDED, "MasterSucceeded", arena_printf(p->a, "pod %s succeeded", master->name));
    return true;
}

/* Pausing clears startTime, restarts do not. */
bool finish_if_overdue(struct planner *p)
{
    const struct opt_i64 *limit = &p->spec->run_policy.active_deadline_s;

    if (!limit->set || !p->st.start_ms || p->spec->debug.enabled)
        return false;
    int64_t due = p->st.start_ms + limit->v * 1000;
    if (due > p->now_ms) {
        planner_requeue(p, due);
        return false;
    }
    const char *message =
        arena_printf(p->a, "the job ran for its activeDeadlineSeconds (%lld)", (long long)limit->v);
    status_finish(p, JOB_FAILED, "DeadlineExceeded", message);
    planner_event(p, true, "DeadlineExceeded", "%s", message);
    return true;
}

/* ---- what is deleted then */

/* Of a pod whose training has ended the phase follows. */
static bool wanted(const struct planner *p, const struct pod *pod)
{
    enum cleanup_policy policy = p->spec->run_policy.cleanup_policy;

    return policy == CLEANUP_NONE || (policy == CLEANUP_UNFINISHED && pod_ended(pod));
}

/* After the master's success the others get a while to end by themselves. */
static bool grace_over(struct planner *p)
{
    int64_t due = p->st.completion_ms + TRAINING_GRACE_MS;
    bool all_ended = true;

    for (int i = 0; i < p->in->n_pods; i++)
        all_ended &= pod_ended(p->in->pods[i]);
    if (p->st.phase == JOB_FAILED || all_ended || p->now_ms >= due)
        return true;
    planner_requeue(p, due);
    return false;
}

/* Not when its user has just changed its mind. */
static void delete_job(struct planner *p)
{
    struct action *act = planner_delete(p, &p->deletes, CHILD_JOB, p->job->name, p->job->uid);

    act->version = arena_strdup(p->a, p->job->resource_version);
}

static void time_to_live(struct planner *p)
{
    const struct opt_i64 *ttl = &p->spec->run_policy.ttl_after_finished_s;

    if (!ttl->set || !p->st.completion_ms)
        return;
    int64_t due = p->st.completion_ms + ttl->v * 1000;
    if (due > p->now_ms)
        planner_requeue(p, due);
    else
        delete_job(p);
}

/* What is unfinished as far as we know may have finished since, and then it stays. */
static void delete_pod(struct planner *p, const struct pod *pod, bool by_policy)
{
    struct action *act = planner_delete_pod(p, pod);

    if (act && by_policy && p->spec->run_policy.cleanup_policy == CLEANUP_UNFINISHED && pod->version[0])
        act->version = arena_strdup(p->a, pod->version);
}

/* The kubelet ends what still runs in a pod beyond its activeDeadlineSeconds, which may be set or lowered at any time. */
static void lower_deadline(struct planner *p, const struct pod *pod, int64_t to_s)
{
    cleanup_json cJSON *doc = cJSON_CreateObject();
    cJSON *meta = cJSON_AddObjectToObject(doc, "metadata");
    struct action *act = planner_add(p, &p->deletes, ACTION_PATCH);

    cJSON_AddStringToObject(meta, "uid", pod->uid);
    cJSON_AddStringToObject(meta, "resourceVersion", pod->version);
    cJSON_AddNumberToObject(cJSON_AddObjectToObject(doc, "spec"), "activeDeadlineSeconds", (double)to_s);
    act->child = CHILD_POD;
    act->name = arena_strdup(p->a, pod->name);
    act->uid = arena_strdup(p->a, pod->uid);
    act->version = arena_strdup(p->a, pod->version);
    act->body = planner_json(p, doc);
    planner_event_in(
        p, &p->deletes, true, "SidecarEnded",
        "pod %s: the operator ends %s: still there sidecarGraceSeconds (%d) after the training had ended",
        pod->name, pod->working, (int)p->spec->run_policy.sidecar_grace_s);
}

/* The kubelet counts from the pod's start, which follows its placement. A deadline that has passed without effect: nothing on
 * the node looks at it, as on a virtual one. */
static void end_sidecars(struct planner *p, const struct pod *pod)
{
    int64_t placed_ms = pod->since_ms ? pod->since_ms : pod->created_ms;
    int64_t age_s = (p->now_ms - placed_ms) / 1000;
    int64_t in_vain_ms = placed_ms + pod->deadline_s * INT64_C(1000) + KUBELET_WAIT_MS;

    age_s = age_s > 1 ? age_s : 1;
    if (!pod->deadline_s || pod->deadline_s > age_s)
        lower_deadline(p, pod, age_s);
    else if (p->now_ms < in_vain_ms)
        planner_requeue(p, in_vain_ms);
    else
        delete_pod(p, pod, true);
}

/* Containers that still work in a pod whose training has ended may go on for sidecarGraceSeconds. A node's clock is believed as
 * far as the training may have gone on after the job's end. */
static void finish_pod(struct planner *p, const struct pod *pod)
{
    int64_t from_ms = pod->training.finished_ms;
    int64_t last_ms = p->st.completion_ms + TRAINING_GRACE_MS;

    from_ms = from_ms > p->st.completion_ms ? from_ms : p->st.completion_ms;
    int64_t due =
        (from_ms < last_ms ? from_ms : last_ms) + p->spec->run_policy.sidecar_grace_s * INT64_C(1000);
    if (p->now_ms < due)
        planner_requeue(p, due);
    else if (p->spec->run_policy.cleanup_policy == CLEANUP_ALL)
        delete_pod(p, pod, true);
    else
        end_sidecars(p, pod);
}

void finish_clean_up(struct planner *p)
{
    bool keep = p->spec->run_policy.cleanup_policy == CLEANUP_NONE;
    bool over = grace_over(p);

    for (int i = 0; i < p->in->n_pods; i++) {
        const struct pod *pod = p->in->pods[i];
        if (pod->attempt < p->st.attempt)
            delete_pod(p, pod, false);
        else if (!keep && pod->working[0] && !pod->deletion_ms)
            finish_pod(p, pod);
        else if (over && !wanted(p, pod))
            delete_pod(p, pod, true);
    }
    time_to_live(p);
}

/* ---- pods that stay Terminating */

static void force(struct planner *p, const struct pod *pod)
{
    int64_t late_s = (p->now_ms - pod->deletion_ms) / 1000;
    struct action *act = planner_delete(p, &p->deletes, CHILD_POD, pod->name, pod->uid);

    act->force = true;
    planner_event_in(p, &p->deletes, true, "PodForceDeleted",
                     "pod %s was still on node %s %lld s after its grace period; it may still run there",
                     pod->name, pod->node[0] ? pod->node : "(none)", (long long)late_s);
}

void finish_force_deletes(struct planner *p)
{
    const struct opt_i64 *limit = &p->spec->run_policy.force_delete_after_s;

    for (int i = 0; limit->set && i < p->in->n_pods; i++) {
        const struct pod *pod = p->in->pods[i];
        if (!pod->deletion_ms || pod->forced)
            continue; /* forced and still there: a finalizer holds it, and asking again changes nothing */
        int64_t due = pod->deletion_ms + limit->v * 1000;
        if (due > p->now_ms)
            planner_requeue(p, due);
        else
            force(p, pod);
    }
}
