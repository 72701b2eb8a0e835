/* startdeadline.h - startDeadlineSeconds: a gang that does not come together gives back what it holds. Pure. */
#ifndef TK_OPERATOR_PLAN_STARTDEADLINE_H
#define TK_OPERATOR_PLAN_STARTDEADLINE_H

#include "operator/plan/judge.h"

/* True: the time is over, and *ret says so as a refusal, with the pod that does not run. */
bool startdeadline_check(struct planner *p, struct judgement *ret);

/* Whether a failure has this reason. */
bool startdeadline_is(const char *reason);

#endif
