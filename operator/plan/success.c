/* success.c - decide whether a job succeeded: pod 0 of the first type. */
#include "operator/plan/success.h"

#include "operator/plan/status.h"

bool success_check(struct planner *p)
{
    const struct slot *master = &p->slots[0];

    if (!planner_slot_done(master))
        return false;
    status_finish(p, JOB_SUCCEEDED, "MasterSucceeded", arena_printf(p->a, "pod %s succeeded", master->name));
    return true;
}
