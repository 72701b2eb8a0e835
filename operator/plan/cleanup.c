/* cleanup.c - cleanUpPolicy and ttlSecondsAfterFinished: which pods are deleted, and when the job is. */
#include "operator/plan/cleanup.h"

enum { SUCCESS_GRACE_MS = 30000 };

/* The container's end is seen a moment before the pod's own phase. Only a sidecar keeps it from coming. */
static bool about_to_finish(struct planner *p, const struct pod *pod)
{
    int64_t due = p->st.completion_ms + SUCCESS_GRACE_MS;

    if (!pod_ended(pod) || p->now_ms >= due)
        return false;
    planner_requeue(p, due);
    return true;
}

static bool wanted(struct planner *p, const struct pod *pod)
{
    switch (p->spec->run_policy.cleanup_policy) {
    case CLEANUP_NONE:
        return true;
    case CLEANUP_UNFINISHED:
        return pod->phase == POD_SUCCEEDED || pod->phase == POD_FAILED || about_to_finish(p, pod);
    case CLEANUP_ALL:
        break;
    }
    return false;
}

/* After the master's success the others get a while to end by themselves. */
static bool grace_over(struct planner *p)
{
    int64_t due = p->st.completion_ms + SUCCESS_GRACE_MS;
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
    planner_delete(p, &p->deletes, CHILD_JOB, p->job->name, p->job->uid);
    p->deletes.items[p->deletes.n - 1].version = arena_strdup(p->a, p->job->resource_version);
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
    int before = p->deletes.n;

    planner_delete_pod(p, pod);
    if (p->deletes.n > before && by_policy && p->spec->run_policy.cleanup_policy == CLEANUP_UNFINISHED &&
        pod->version[0])
        p->deletes.items[before].version = arena_strdup(p->a, pod->version);
}

void cleanup_finished(struct planner *p)
{
    bool over = grace_over(p);

    for (int i = 0; i < p->in->n_pods; i++) {
        const struct pod *pod = p->in->pods[i];
        bool old = pod->attempt < p->st.attempt;
        if (old || (over && !wanted(p, pod)))
            delete_pod(p, pod, !old);
    }
    time_to_live(p);
}
