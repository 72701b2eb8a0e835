/* ignored.h - report spec fields that are accepted and have no effect: one event for each reason. Pure. */
#ifndef TK_OPERATOR_PLAN_IGNORED_H
#define TK_OPERATOR_PLAN_IGNORED_H

#include "operator/plan/planner.h"

/* Add the events, in the first plan of each generation only. */
void ignored_tell(struct planner *p);

/* Of a changed template that makes no pods now: the job has ended, or is still in `attempt`, which goes on. */
void ignored_tell_change(struct planner *p, int attempt);

#endif
