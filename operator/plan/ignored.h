/* ignored.h - report spec fields that are accepted but have no effect: one event per reason. Pure. */
#ifndef TK_OPERATOR_PLAN_IGNORED_H
#define TK_OPERATOR_PLAN_IGNORED_H

#include "operator/plan/planner.h"

/* Add the events, in the first plan of each generation only. */
void ignored_report(struct planner *p);

/* Report a changed template that has no effect now: the job has ended, or `attempt` continues with the old
 * one. */
void ignored_report_change(struct planner *p, int attempt);

#endif
