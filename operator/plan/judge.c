/* judge.c - find the strongest evidence among the failed pods of an attempt. */
#include "operator/plan/judge.h"

#include <signal.h>
#include <string.h>

enum { EVIDENCE_WAIT_MS = 30000 }; /* peers of a lost rank die of broken connections first */

void judge_apply_policy(struct verdict *v, enum restart_policy policy)
{
    if (v->class <= VERDICT_SUCCESS)
        return;
    switch (policy) {
    case RESTART_EXIT_CODE:
        return;
    case RESTART_NEVER:
        v->class = VERDICT_PERMANENT;
        return;
    case RESTART_ALWAYS:
    case RESTART_ON_FAILURE:
        if (v->class == VERDICT_PERMANENT)
            v->class = VERDICT_RETRYABLE;
        return;
    }
}

/* A pod that the status knows was there. It is gone, or someone changed its labels. */
static struct verdict judge_missing(const struct planner *p, const struct slot *s)
{
    if (!s->seen || !s->seen->uid || planner_slot_done(s))
        return (struct verdict){.class = VERDICT_NONE, .exit_code = -1, .rank = -1};
    return exitcode_lost(s->seen->exit_code, &p->spec->run_policy);
}

/* Whether a, of the same class, comes before b: b aborted, which gloo and NCCL also do to the peers of a rank that is gone, and a has
 * said why it ended. */
static bool explains_abort(const struct verdict *a, const struct verdict *b)
{
    return b->signal == SIGABRT && a->signal != SIGABRT && a->message[0];
}

struct judgement judge_attempt(struct planner *p)
{
    struct verdict *verdicts = arena_array(p->a, (size_t)p->n_slots, struct verdict);
    struct judgement j = {.all_ended = true, .verdicts = verdicts};
    enum verdict_class evidence = VERDICT_NONE; /* of j.v, whatever the policy makes of it */

    for (int i = 0; i < p->n_slots; i++) {
        const struct slot *s = &p->slots[i];
        struct verdict v = s->pod ? exitcode_verdict(s->pod, &p->spec->run_policy) : judge_missing(p, s);
        enum verdict_class own = v.class;
        judge_apply_policy(&v, s->spec->restart_policy);
        verdicts[i] = v;
        if (v.class == VERDICT_NONE && (s->pod || (s->seen && s->seen->uid)) && !planner_slot_done(s))
            j.all_ended = false; /* a pod that was never made gives no evidence */
        if (v.class <= VERDICT_SUCCESS)
            continue;
        /* 0: nothing to count from: no wait, or it would begin anew in every pass. */
        if (!j.slot || v.finished_ms < j.first_failure_ms)
            j.first_failure_ms = v.finished_ms;
        /* A policy may make one thing follow from all ends; which of them is to blame stays the evidence's business. */
        if (!j.slot || v.class > j.v.class ||
            (v.class == j.v.class && (own > evidence || (own == evidence && explains_abort(&v, &j.v))))) {
            evidence = own;
            j.v = v;
            j.slot = s;
        }
    }
    if (j.slot) {
        p->seen.failure_ms = planner_first_seen(p, p->in->seen.failure_ms, p->now_ms);
        j.first_failure_ms = planner_first_seen(p, p->seen.failure_ms, j.first_failure_ms);
    }
    return j;
}

bool judge_may_act(struct planner *p, const struct judgement *j)
{
    int64_t wait_end = j->first_failure_ms + EVIDENCE_WAIT_MS;

    if (j->v.class >= VERDICT_KILL || j->all_ended || p->now_ms >= wait_end)
        return true;
    planner_requeue(p, wait_end);
    return false;
}
