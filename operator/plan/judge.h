/* judge.h - find the strongest verdict among the pods of an attempt. Pure.
 *
 * Ownership: a judgement borrows from the planner.
 */
#ifndef TK_OPERATOR_PLAN_JUDGE_H
#define TK_OPERATOR_PLAN_JUDGE_H

#include "operator/plan/exitcode.h"
#include "operator/plan/planner.h"

struct judgement {
    struct verdict v;
    const struct slot *slot;  /* NULL: nothing failed */
    int64_t first_failure_ms; /* the earliest end among the failed pods; 0: not known */
    bool all_ended;
    const struct verdict *verdicts; /* one for each slot */
};

/* Judge the current attempt. A pod that is in the status but not in the cache was lost. */
struct judgement judge_attempt(struct planner *p);

/* Whether to act on the failure now. False: stronger evidence may follow; the job is planned again when the
 * wait is over. */
bool judge_may_act(struct planner *p, const struct judgement *j);

/* Change the verdict's class by the restart policy of the pod's type, unless a rule set it. */
void judge_apply_policy(struct verdict *v, enum restart_policy policy);

/* Whether restartScope Replica allows to replace the failed pods one by one. False: the attempt is judged as
 * a whole. */
bool judge_can_replace(const struct planner *p, const struct judgement *j);

#endif
