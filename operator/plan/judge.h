/* judge.h - the strongest evidence among the pods of an attempt. Pure.
 *
 * Ownership: a judgement borrows from the pass.
 */
#ifndef TK_OPERATOR_PLAN_JUDGE_H
#define TK_OPERATOR_PLAN_JUDGE_H

#include "operator/plan/exitcode.h"
#include "operator/plan/planner.h"

struct judgement {
    struct verdict v;
    const struct slot *slot;  /* NULL: nothing failed */
    int64_t first_failure_ms; /* the earliest end among the failures; 0: not known */
    bool all_ended;
    const struct verdict *verdicts; /* of each slot */
};

/* Pods that the status knows and the cache does not are asked about (p->checks) and do not count yet. */
struct judgement judge_attempt(struct planner *p);

/* There is a failure. False: stronger evidence may still come, and the pass is planned again when it cannot. */
bool judge_may_act(struct planner *p, const struct judgement *j);

/* The restart policy of the pod's type turns what happened into what follows. */
void judge_apply_policy(struct verdict *v, enum restart_policy policy);

#endif
