/* restart.h - judge an attempt by its strongest verdict (exitcode.h): continue, wait, restart or fail. Pure.
 *
 * Limits:    a failure counts against backoffLimit and waits for the back-off. Disruptions (such as an
 *            eviction) have a separate count: they restart without waiting, and 100 of them per day of the
 *            job's age fail it.
 * Order:     these functions change only the status. The pods of the old attempt are deleted after it was
 *            written.
 */
#ifndef TK_OPERATOR_PLAN_RESTART_H
#define TK_OPERATOR_PLAN_RESTART_H

#include "operator/plan/planner.h"

/* Judge the current attempt. If the job fails, it finishes p->st; if it restarts, it increments p->st.attempt
 * and fills the slots again. False: a failure waits for stronger evidence, so begin no new attempt now. */
bool restart_judge(struct planner *p);

/* When the pods of the current attempt may be created, after consecutive failures; 0: now. */
int64_t restart_due_ms(const struct jobstatus *st);

/* The same for the pod that replaces a failed one within the attempt. */
int64_t restart_slot_due_ms(const struct jobstatus *st, const char *pod);

/* Begin the next attempt without a failure: its pods replace the current ones. */
void restart_next_attempt(struct planner *p);

/* Record in the status that the slot's pod is replaced, before its delete and the next create. */
void restart_replace_pod(struct planner *p, const struct slot *s);

#endif
