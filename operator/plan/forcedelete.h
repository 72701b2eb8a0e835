/* forcedelete.h - forceDeleteAfterSeconds: delete pods that stay Terminating without waiting for their node.
 * Pure.
 */
#ifndef TK_OPERATOR_PLAN_FORCEDELETE_H
#define TK_OPERATOR_PLAN_FORCEDELETE_H

#include "operator/plan/planner.h"

void forcedelete_plan(struct planner *p);

#endif
