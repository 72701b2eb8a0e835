/* startdeadline.h - startDeadlineSeconds: end an attempt whose pods do not all start in time, so that it
 * frees its resources. Pure.
 */
#ifndef TK_OPERATOR_PLAN_STARTDEADLINE_H
#define TK_OPERATOR_PLAN_STARTDEADLINE_H

#include "operator/plan/judge.h"

/* True: the deadline has passed, and *ret is a verdict VERDICT_ADMISSION with the first pod that does not
 * run. */
bool startdeadline_check(struct planner *p, struct judgement *ret);

/* Whether this is the reason of such a failure. */
bool startdeadline_is(const char *reason);

#endif
