/* restart.h - judge an attempt by its strongest verdict (exitcode.h): go on, wait, restart or fail. Pure.
 *
 * Limits:    a failure counts against backoffLimit and waits for the back-off. Disruptions (an evicted pod) have a count of
 *            their own: they restart without waiting, and 100 of them for each day of the job's age fail it.
 * Order:     all of this changes the status only. The pods of the old attempt are deleted after it was written.
 */
#ifndef TK_OPERATOR_PLAN_RESTART_H
#define TK_OPERATOR_PLAN_RESTART_H

#include "operator/plan/planner.h"

/* Judge the present attempt. A job that failed is finished in p->st; a restart increments p->st.attempt and
 * fills the slots again. False: a failure waits for stronger evidence, which a new attempt now would lose. */
bool restart_judge(struct planner *p);

/* When the pods of the present attempt may be created, after failures in a row; 0: at once. */
int64_t restart_due_ms(const struct jobstatus *st);

/* The same for the pod that replaces a failed one within the attempt. */
int64_t restart_slot_due_ms(const struct jobstatus *st, const char *pod);

/* Begin the next attempt without a failure: the present pods are replaced. */
void restart_next_attempt(struct planner *p);

#endif
