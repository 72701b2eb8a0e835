/* backoff.h - compute how long a restart waits after failures in a row. Pure. */
#ifndef TK_OPERATOR_PLAN_BACKOFF_H
#define TK_OPERATOR_PLAN_BACKOFF_H

#include "operator/plan/planner.h"

/* When the pods of the present attempt may be created; 0: at once. */
int64_t backoff_due_ms(const struct jobstatus *st);

/* The same for the pod that replaces a failed one within the attempt. */
int64_t backoff_slot_due_ms(const struct jobstatus *st, const char *pod);

#endif
