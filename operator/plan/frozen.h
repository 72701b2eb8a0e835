/* frozen.h - plan a job of which something cannot be read: nothing is created or deleted until it is readable. Pure. */
#ifndef TK_OPERATOR_PLAN_FROZEN_H
#define TK_OPERATOR_PLAN_FROZEN_H

#include "operator/plan/planner.h"

#define FROZEN_REASON "Unreadable"

/* in->unreadable is not NULL: say so once, in status.reason and an event, and do nothing else. Of a job that finished
 * nothing is said. */
void frozen_plan(struct planner *p, struct plan *out);

/* The status's reason before it was frozen, of a job that finished. */
const char *frozen_final_reason(const struct jobstatus *st);

#endif
