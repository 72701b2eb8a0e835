/* judge.h - find the strongest verdict among the pods of an attempt. No system calls.
 *
 * Ownership: a judgement borrows from the planner.
 * Order:     judge_attempt stores in p->out->seen when the operator first saw a failure, and applies podFailurePolicy and
 *            restartPolicy to all verdicts; then judge_may_act, which may call planner_requeue.
 */
#ifndef TK_OPERATOR_PLAN_JUDGE_H
#define TK_OPERATOR_PLAN_JUDGE_H

#include "operator/plan/exitcode.h"
#include "operator/plan/planner.h"

struct judgement {
    struct verdict v;
    const struct slot *slot; /* NULL: nothing failed */
    /* The earliest end among the failed pods, at the latest when the operator first saw the failure. 0: the end of
     * one is not known; then judge_may_act does not wait. */
    int64_t first_failure_ms;
    bool all_ended;                 /* no pod that was created still runs */
    const struct verdict *verdicts; /* one for each slot */
};

/* Judge the current attempt. A pod that the job's status names with a UID and the pod cache does not have counts as
 * lost, unless it had exited with 0. */
struct judgement judge_attempt(struct planner *p);

/* Whether to act on the failure now. False: stronger evidence may follow, within 30 s of first_failure_ms, or 60 s if a pod has
 * lost a peer on another node that still seems to run; the job is planned again then. If the node of that peer does not report, the
 * verdict becomes that it was lost. */
bool judge_may_act(struct planner *p, struct judgement *j);

/* Change the verdict's class by the restart policy of the pod's type, unless a rule set it. */
void judge_apply_policy(struct verdict *v, enum restart_policy policy);

/* Whether restartScope Replica allows to replace the failed pods one by one. False: the attempt is judged as
 * a whole. */
bool judge_can_replace(const struct planner *p, const struct judgement *j);

#endif
