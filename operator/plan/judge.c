/* judge.c - find the strongest evidence among the failed pods of an attempt, and whether they are replaced
 * one by one. */
#include "operator/plan/judge.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

/* ---- find the first rule of podFailurePolicy that matches a failed pod, as the Job controller does */

/* One line of pod.evidence: a container and its exit code, or a condition and its status. */
struct fact {
    char kind;
    struct sv what, how;
};

/* Take the next line; false: there is none. */
static bool next_fact(struct sv *text, struct fact *ret)
{
    struct sv line, kind;

    *ret = (struct fact){0};
    if (!sv_next(text, '\n', &line))
        return false;
    if (sv_next(&line, '\t', &kind) && kind.len == 1 && sv_next(&line, '\t', &ret->what) &&
        sv_next(&line, '\t', &ret->how))
        ret->kind = kind.p[0];
    return true;
}

/* The code is not 0. */
static bool matches_code(const cJSON *on, const struct fact *f)
{
    const char *container = json_str(on, "containerName");
    bool in = strcmp(json_str(on, "operator"), "In") == 0;
    const cJSON *value;
    int64_t code = 0;

    if (f->kind != 'c' || (container && !sv_eq(f->what, container)) ||
        !sv_i64(f->how, INT32_MIN, INT32_MAX, &code))
        return false;
    cJSON_ArrayForEach(value, json_child(on, "values"))
    {
        if (value->valuedouble == (double)code)
            return in;
    }
    return !in;
}

static bool matches_condition(const cJSON *patterns, const struct fact *f)
{
    const cJSON *pattern;

    cJSON_ArrayForEach(pattern, patterns)
    {
        const char *state = json_str(pattern, "status");
        if (f->kind == 'p' && sv_eq(f->what, json_str(pattern, "type")) &&
            sv_eq(f->how, state ? state : "True"))
            return true;
    }
    return false;
}

static bool find_match(const cJSON *rule, const char *evidence, struct fact *ret)
{
    const cJSON *codes = json_child(rule, "onExitCodes");
    const cJSON *patterns = json_child(rule, "onPodConditions");
    struct sv rest = sv_from(evidence);

    while (next_fact(&rest, ret))
        if (codes ? matches_code(codes, ret) : matches_condition(patterns, ret))
            return true;
    return false;
}

/* In the words of the Job controller. */
static const char *describe(const struct planner *p, const struct slot *s, const struct fact *f, int rule)
{
    if (f->kind == 'c')
        return arena_printf(
            p->a, "Container %.*s for pod %s/%s failed with exit code %.*s matching FailJob rule at index %d",
            (int)f->what.len, f->what.p, p->job->ns, s->name, (int)f->how.len, f->how.p, rule);
    return arena_printf(p->a, "Pod %s/%s has condition %.*s matching FailJob rule at index %d", p->job->ns,
                        s->name, (int)f->what.len, f->what.p, rule);
}

static void decide(const struct planner *p, const struct slot *s, const char *action, const struct fact *f,
                   int rule, struct verdict *v)
{
    if (strcmp(action, "Ignore") == 0) {
        v->class = VERDICT_UNCOUNTED;
    } else if (strcmp(action, "Count") == 0) {
        v->class = VERDICT_COUNTED;
    } else {
        v->class = VERDICT_FAIL_JOB;
        v->rule = describe(p, s, f, rule);
    }
}

/* Of a pod that is gone the status has the exit code of the training container. */
static const char *evidence_of(const struct planner *p, const struct slot *s)
{
    if (s->pod)
        return s->pod->evidence;
    bool known = s->seen && s->seen->container && s->seen->exit_code > 0;
    return known ? arena_printf(p->a, "c\t%s\t%d\n", s->seen->container, s->seen->exit_code) : "";
}

/* Change the verdict on the slot's failed pod by the first rule that matches: the class becomes that of the
 * rule's action. While a pod that is being deleted has not ended, a rule on exit codes may still match: then
 * the class becomes VERDICT_NONE. */
static void failurerule_apply(const struct planner *p, const struct slot *s, struct verdict *v)
{
    const cJSON *rules = p->spec->run_policy.failure_rules;
    bool ended = !s->pod || pod_ended(s->pod);
    const cJSON *rule;
    struct fact fact;
    int i = 0;

    if (!rules || v->class <= VERDICT_SUCCESS)
        return;
    const char *evidence = evidence_of(p, s);
    cJSON_ArrayForEach(rule, rules)
    {
        if (!ended && json_child(rule, "onExitCodes")) {
            v->class = VERDICT_NONE;
            return;
        }
        if (find_match(rule, evidence, &fact)) {
            decide(p, s, json_str(rule, "action"), &fact, i, v);
            return;
        }
        i++;
    }
}

/* ---- the judgement */

/* Peers of a lost rank often fail first, with broken connections: 5 s after its node died, say. By default the control plane
 * notices that 50 to 55 s after the node's last heartbeat. */
enum { EVIDENCE_WAIT_MS = 30000, NODE_WAIT_MS = 60000 };

void judge_apply_policy(struct verdict *v, enum restart_policy policy)
{
    if (v->class <= VERDICT_SUCCESS || v->class >= VERDICT_UNCOUNTED)
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

/* A pod in the status that is not in the cache: it was deleted, or its labels were changed. */
static struct verdict judge_missing(const struct planner *p, const struct slot *s)
{
    if (!s->seen || !s->seen->uid || planner_slot_done(s))
        return (struct verdict){.class = VERDICT_NONE, .exit_code = -1, .rank = -1};
    return exitcode_lost(s->seen->exit_code, &p->spec->run_policy);
}

/* Whether `a` explains the failure better than `b` of the same class: b aborted, which gloo and NCCL also do
 * in the peers of a lost rank, and `a` has a message. */
static bool explains_abort(const struct verdict *a, const struct verdict *b)
{
    return b->signal == SIGABRT && a->signal != SIGABRT && a->message[0];
}

struct judgement judge_attempt(struct planner *p)
{
    struct verdict *verdicts = arena_array(p->a, (size_t)p->n_slots, struct verdict);
    struct judgement j = {.all_ended = true, .verdicts = verdicts};
    enum verdict_class evidence = VERDICT_NONE; /* the class of j.v before the restart policy */

    for (int i = 0; i < p->n_slots; i++) {
        const struct slot *s = &p->slots[i];
        struct verdict v = s->pod ? exitcode_verdict(s->pod, &p->spec->run_policy) : judge_missing(p, s);
        failurerule_apply(p, s, &v);
        enum verdict_class own = v.class;
        judge_apply_policy(&v, s->spec->restart_policy);
        verdicts[i] = v;
        if (v.class == VERDICT_NONE && (s->pod || (s->seen && s->seen->uid)) && !planner_slot_done(s))
            j.all_ended = false; /* a pod that was never created gives no evidence */
        if (v.class <= VERDICT_SUCCESS)
            continue;
        /* 0: unknown time. Do not wait then, since the wait would begin again in every plan. */
        if (!j.slot || v.finished_ms < j.first_failure_ms)
            j.first_failure_ms = v.finished_ms;
        /* restartPolicy may give all failures one class; then the class before that selects the pod to blame. */
        if (!j.slot || v.class > j.v.class ||
            (v.class == j.v.class && (own > evidence || (own == evidence && explains_abort(&v, &j.v))))) {
            evidence = own;
            j.v = v;
            j.slot = s;
        }
    }
    if (j.slot) {
        p->out->seen.failure_ms = planner_first_seen(p, p->in->seen.failure_ms, p->now_ms);
        j.first_failure_ms = planner_first_seen(p, p->out->seen.failure_ms, j.first_failure_ms);
    }
    return j;
}

bool judge_may_act(struct planner *p, struct judgement *j)
{
    const struct slot *lost = NULL; /* its pod still seems to run, on a node that does not report */
    bool elsewhere = false; /* so does one of another node than the failed one's: that node may be dead */

    for (int i = 0; i < p->n_slots && j->v.class == VERDICT_PEER_LOST; i++) {
        const struct slot *s = &p->slots[i];
        if (!s->pod || j->verdicts[i].class != VERDICT_NONE)
            continue;
        elsewhere = elsewhere || (j->slot->pod && strcmp(s->pod->node, j->slot->pod->node) != 0);
        if (s->pod->node_lost)
            lost = s;
    }
    int64_t wait_end = j->first_failure_ms + (elsewhere ? NODE_WAIT_MS : EVIDENCE_WAIT_MS);
    if (j->v.class < VERDICT_KILL && !j->all_ended && !planner_is_due(p, wait_end))
        return false;
    if (lost) {
        j->v = exitcode_node_lost();
        j->slot = lost;
    }
    return true;
}

/* ---- restartScope Replica */

/* Whether torchrun ended by itself, not by a signal: it has then closed the rendezvous for all pods. */
static bool torchrun_gave_up(const struct pod *pod)
{
    const struct pod_container *c = &pod->training;

    return c->state == CONTAINER_TERMINATED && c->exit_code > 0 && c->exit_code < 128 &&
           strcmp(c->reason, "OOMKilled") != 0 && !strstr(c->message, "SignalException");
}

static bool breaks_the_gang(const struct planner *p, const struct slot *s, const struct verdict *v)
{
    const struct torchrun_config *t = &p->spec->torchrun;

    if (v->class == VERDICT_PEER_LOST || !s->seen || s->seen->restarts == COUNT_MAX)
        return true;
    if (!t->enabled || p->spec->debug.enabled)
        return false;
    if (t->rdzv_backend == RDZV_STATIC || (t->rdzv_backend == RDZV_C10D && s->order == 0))
        return true;
    return s->pod && torchrun_gave_up(s->pod);
}

bool judge_can_replace(const struct planner *p, const struct judgement *j)
{
    if (p->spec->run_policy.restart_scope != SCOPE_REPLICA || j->v.class <= VERDICT_PERMANENT ||
        j->v.class == VERDICT_FAIL_JOB)
        return false;
    for (int i = 0; i < p->n_slots; i++)
        if (j->verdicts[i].class > VERDICT_SUCCESS && breaks_the_gang(p, &p->slots[i], &j->verdicts[i]))
            return false;
    return true;
}
