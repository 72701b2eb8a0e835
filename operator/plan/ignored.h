/* ignored.h - report spec fields that are accepted and have no effect: one event for each reason. Pure. */
#ifndef TK_OPERATOR_PLAN_IGNORED_H
#define TK_OPERATOR_PLAN_IGNORED_H

#include "operator/plan/planner.h"

/* Add the events, in the first plan of each generation only. */
void ignored_tell(struct planner *p);

#endif
