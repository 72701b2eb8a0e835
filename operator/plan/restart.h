/* restart.h - judge an attempt by its strongest verdict (exitcode.h): go on, wait, restart or fail. Pure.
 *
 * Limits:    a failure counts against backoffLimit and waits for the back-off. A disruption (an evicted pod) counts by itself, restarts
 *            without waiting, and fails the job after 100 of them per day of its age.
 * Order:     everything here changes the status only; pods of the old attempt are deleted after it was
 *            written.
 */
#ifndef TK_OPERATOR_PLAN_RESTART_H
#define TK_OPERATOR_PLAN_RESTART_H

#include "operator/plan/planner.h"

/* Judge the present attempt. A job that failed is finished in p->st; a restart increments p->st.attempt and
 * fills the slots again. False: a failure waits for stronger evidence, or a missing pod is being checked: a
 * new attempt now would lose that evidence. */
bool restart_judge(struct planner *p);

/* Begin the next attempt without a failure: the present pods are replaced. */
void restart_next_attempt(struct planner *p);

#endif
