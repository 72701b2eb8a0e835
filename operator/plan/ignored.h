/* ignored.h - tell of fields in the spec that are accepted and have no effect: one event for each reason. Pure. */
#ifndef TK_OPERATOR_PLAN_IGNORED_H
#define TK_OPERATOR_PLAN_IGNORED_H

#include "operator/plan/planner.h"

/* Events in the first plan of each generation; none in a later one. */
void ignored_tell(struct planner *p);

#endif
