/* restart.h - judge an attempt by its strongest evidence: go on, wait, restart or fail. Pure.
 *
 * Order: everything here changes the status alone; pods of the old attempt go after it was written.
 */
#ifndef TK_OPERATOR_PLAN_RESTART_H
#define TK_OPERATOR_PLAN_RESTART_H

#include "operator/plan/planner.h"

/* A failed job is finished in p->st; a restart raises p->st.attempt and fills the slots again. False: a failure waits for
 * stronger evidence, or a pod that vanished is asked about: who ends the attempt now loses what happened in it. */
bool restart_judge(struct planner *p);

/* The attempt is over without a failure: its pods go and the next one's come. */
void restart_next_attempt(struct planner *p);

/* When the pods of the current attempt may be created: 0 at once. */
int64_t restart_due_ms(const struct jobstatus *st);

/* The same for the pod that replaces a failed one within the attempt. */
int64_t restart_slot_due_ms(const struct jobstatus *st, const char *pod);

#endif
