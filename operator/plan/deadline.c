/* deadline.c - activeDeadlineSeconds: when a job has run for too long. Pausing clears startTime, restarts do not. */
#include "operator/plan/status.h"
#include "operator/plan/success.h"

bool deadline_check(struct planner *p)
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
