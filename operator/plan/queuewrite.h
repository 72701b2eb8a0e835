/* queuewrite.h - what is written to the Workloads of a job, by what queue.h has decided. Pure.
 *
 * Ownership: everything lives in the plan's arena.
 */
#ifndef TK_OPERATOR_PLAN_QUEUEWRITE_H
#define TK_OPERATOR_PLAN_QUEUEWRITE_H

#include "operator/plan/planner.h"

/* Add the actions on the Workloads: to p->workloads, which precede creates, and the condition PodsReady and changes
 * of a spec to p->ready, which is last. plan_orphans (plan.h) does it for a job that is gone or is being deleted. */
void queuewrite_act(struct planner *p);

#endif
