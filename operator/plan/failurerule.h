/* failurerule.h - runPolicy.podFailurePolicy: rules of the user, which go before exitcode.h. Pure. */
#ifndef TK_OPERATOR_PLAN_FAILURERULE_H
#define TK_OPERATOR_PLAN_FAILURERULE_H

#include "operator/plan/exitcode.h"
#include "operator/plan/planner.h"

/* Change the verdict on the slot's failed pod by the first rule that matches: the class becomes that of the
 * rule's action. While a pod that is being deleted has not ended, a rule on exit codes may still match: then
 * the class becomes VERDICT_NONE. */
void failurerule_apply(const struct planner *p, const struct slot *s, struct verdict *v);

#endif
