/* mend.h - repair a status that was edited by hand or written with a wrong clock. Pure.
 *
 * jobstatus.h drops counts and lists that are out of bounds; this module handles what depends on the time or
 * on the rest of the status.
 */
#ifndef TK_OPERATOR_PLAN_MEND_H
#define TK_OPERATOR_PLAN_MEND_H

#include "operator/plan/planner.h"

/* Times more than 10 min in the future become now. Missing parts of a finished status (phase, condition,
 * completionTime) are restored from the others. */
void mend_status(struct planner *p);

/* Returns `ms`, or now if it is more than 10 min in the future. */
int64_t mend_time(const struct planner *p, int64_t ms);

#endif
