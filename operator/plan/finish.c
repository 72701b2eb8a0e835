/* finish.c - finish a job: by the success of pod 0 of the first type, or by activeDeadlineSeconds. */
#include "operator/plan/finish.h"

#include "operator/plan/status.h"

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
