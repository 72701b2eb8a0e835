/* finish.c - end a job, delete its pods and later the job, and delete pods that stay Terminating. */
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

/* A pause clears startTime; restarts do not. */
bool finish_if_overdue(struct planner *p)
{
    const struct opt_i64 *limit = &p->spec->run_policy.active_deadline_s;

    if (!limit->set || !p->st.start_ms || p->spec->debug.enabled)
        return false;
    if (!planner_is_due(p, p->st.start_ms + limit->v * 1000))
        return false;
    const char *message =
        arena_printf(p->a, "the job ran for its activeDeadlineSeconds (%lld)", (long long)limit->v);
    status_finish(p, JOB_FAILED, "DeadlineExceeded", message);
    planner_event(p, true, "DeadlineExceeded", "%s", message);
    return true;
}

/* ---- deletions after the end */

/* Whether cleanUpPolicy keeps the pod. A pod whose training has ended counts as finished, since its phase
 * will follow. */
static bool wanted(const struct planner *p, const struct pod *pod)
{
    enum cleanup_policy policy = p->spec->run_policy.cleanup_policy;

    return policy == CLEANUP_NONE || (policy == CLEANUP_UNFINISHED && pod_ended(pod));
}

/* After the master's success, the other pods get some time to end by themselves. */
static bool grace_over(struct planner *p)
{
    bool all_ended = true;

    for (int i = 0; i < p->in->n_pods; i++)
        all_ended &= pod_ended(p->in->pods[i]);
    return p->st.phase == JOB_FAILED || all_ended ||
           planner_is_due(p, p->st.completion_ms + TRAINING_GRACE_MS);
}

static void time_to_live(struct planner *p)
{
    const struct opt_i64 *ttl = &p->spec->run_policy.ttl_after_finished_s;

    if (ttl->set && p->st.completion_ms && planner_is_due(p, p->st.completion_ms + ttl->v * 1000))
        /* only at the planned version: the user may just have changed the job */
        planner_on(p, &p->deletes, ACTION_DELETE, CHILD_JOB, p->job->name, p->job->uid)->version =
            arena_strdup(p->a, p->job->resource_version);
}

/* by_policy: cleanUpPolicy deletes the pod because it is unfinished. It may have finished meanwhile, so the
 * delete names the version. */
static void delete_pod(struct planner *p, const struct pod *pod, bool by_policy)
{
    struct action *act = planner_delete_pod(p, pod);

    if (act && by_policy && p->spec->run_policy.cleanup_policy == CLEANUP_UNFINISHED && pod->version[0])
        act->version = arena_strdup(p->a, pod->version);
}

/* The kubelet ends the containers of a pod after its activeDeadlineSeconds, which may be set or lowered at
 * any time. */
static void lower_deadline(struct planner *p, const struct pod *pod, int64_t to_s)
{
    cleanup_json cJSON *doc = cJSON_CreateObject();
    cJSON *meta = cJSON_AddObjectToObject(doc, "metadata");
    struct action *act = planner_on(p, &p->deletes, ACTION_PATCH, CHILD_POD, pod->name, pod->uid);

    cJSON_AddStringToObject(meta, "uid", pod->uid);
    cJSON_AddStringToObject(meta, "resourceVersion", pod->version);
    cJSON_AddNumberToObject(cJSON_AddObjectToObject(doc, "spec"), "activeDeadlineSeconds", (double)to_s);
    act->version = arena_strdup(p->a, pod->version);
    act->body = json_print(doc, p->a);
    planner_event_in(
        p, &p->deletes, true, "SidecarEnded",
        "pod %s: the operator ends %s: still running sidecarGraceSeconds (%d) after the training ended",
        pod->name, pod->working, (int)p->spec->run_policy.sidecar_grace_s);
}

/* The kubelet counts from the pod's start, after its placement. If a deadline has passed without effect, the
 * node does not enforce deadlines, as a virtual node. */
static void end_sidecars(struct planner *p, const struct pod *pod)
{
    int64_t placed_ms = pod->since_ms ? pod->since_ms : pod->created_ms;
    int64_t age_s = (p->now_ms - placed_ms) / 1000;
    int64_t expired_ms = placed_ms + pod->deadline_s * INT64_C(1000) + KUBELET_WAIT_MS;

    age_s = age_s > 1 ? age_s : 1;
    if (!pod->deadline_s || pod->deadline_s > age_s)
        lower_deadline(p, pod, age_s);
    else if (planner_is_due(p, expired_ms))
        delete_pod(p, pod, true);
}

/* Containers that still run in a pod whose training has ended may continue for sidecarGraceSeconds. The end
 * of the training is of the node's clock, so it is limited to the time for which the training may continue
 * after the job's end. */
static void finish_pod(struct planner *p, const struct pod *pod)
{
    int64_t from_ms = pod->training.finished_ms;
    int64_t last_ms = p->st.completion_ms + TRAINING_GRACE_MS;

    from_ms = from_ms > p->st.completion_ms ? from_ms : p->st.completion_ms;
    int64_t due =
        (from_ms < last_ms ? from_ms : last_ms) + p->spec->run_policy.sidecar_grace_s * INT64_C(1000);
    if (!planner_is_due(p, due))
        return;
    if (p->spec->run_policy.cleanup_policy == CLEANUP_ALL)
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

    planner_on(p, &p->deletes, ACTION_DELETE, CHILD_POD, pod->name, pod->uid)->force = true;
    planner_event_in(p, &p->deletes, true, "PodForceDeleted",
                     "pod %s was still on node %s %lld s after its grace period; it may still run there",
                     pod->name, pod->node[0] ? pod->node : "(none)", (long long)late_s);
}

void finish_force_deletes(struct planner *p)
{
    const struct opt_i64 *limit = &p->spec->run_policy.force_delete_after_s;

    for (int i = 0; limit->set && i < p->in->n_pods; i++) {
        const struct pod *pod = p->in->pods[i];
        /* forced: a finalizer keeps it, and another delete changes nothing */
        if (pod->deletion_ms && !pod->forced && planner_is_due(p, pod->deletion_ms + limit->v * 1000))
            force(p, pod);
    }
}
