/* timing.c - the waits of users: for the first pod, for all pods to run, and to run again. */
#include "operator/plan/timing.h"

#include <string.h>

/* Waiting begins with the job's creation, or when a job that was created suspended is first resumed. */
static int64_t wanted_since(const struct planner *p)
{
    const struct condition *paused = &p->st.conditions[COND_PAUSED];

    if (paused->state == COND_FALSE && paused->reason && strcmp(paused->reason, "Started") == 0)
        return paused->transition_ms;
    return p->job->created_ms;
}

static bool had_pods(const struct planner *p)
{
    const struct jobstatus *old = &p->job->status;

    for (int t = 0; t < old->n_tasks; t++)
        for (int i = 0; i < old->tasks[t].n_replicas; i++)
            if (old->tasks[t].replicas[i].uid)
                return true;
    return p->in->n_pods > 0 || p->st.attempt > 0;
}

static bool creates_pod(const struct plan *plan)
{
    for (int i = 0; i < plan->n_actions; i++)
        if (plan->actions[i].kind == ACTION_CREATE && plan->actions[i].child == CHILD_POD)
            return true;
    return false;
}

/* A change from Unknown is not a start: the pods may have run all the time. */
static bool begins_to_run(const struct planner *p)
{
    enum job_phase old = p->job->status.phase;

    return p->st.phase == JOB_RUNNING && old != JOB_RUNNING && old != JOB_UNKNOWN;
}

void timing_note(const struct planner *p, struct plan *out)
{
    const struct failure *last = p->st.last_failure;
    bool failed = p->job->status.conditions[COND_REPLICA_FAILURE].state == COND_TRUE;

    if (!had_pods(p) && creates_pod(out))
        out->waits.first_pod_ms = wanted_since(p);
    if (begins_to_run(p) && failed && last && last->time_ms >= p->st.start_ms)
        out->waits.running_again_ms = last->time_ms;
    else if (begins_to_run(p) && p->st.attempt == 0 && !last)
        out->waits.running_ms = wanted_since(p);
}
