/* frozen.h - plan a job of which something cannot be read: nothing is created or deleted until it is readable. Pure. */
#ifndef TK_OPERATOR_PLAN_FROZEN_H
#define TK_OPERATOR_PLAN_FROZEN_H

#include "operator/plan/planner.h"

#define FROZEN_REASON "Unreadable"

/* For in->unreadable not NULL: report it once, in status.reason and an event, and do nothing else. For a
 * finished job nothing is reported. */
void frozen_plan(struct planner *p, struct plan *out);

/* The reason of a finished job: status.reason, or what it was before FROZEN_REASON replaced it. */
const char *frozen_final_reason(const struct jobstatus *st);

#endif
