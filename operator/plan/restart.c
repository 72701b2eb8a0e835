/* restart.c - decide after a failure whether to go on, wait, restart or fail, and what is counted. */
#include "operator/plan/restart.h"

#include "operator/plan/backoff.h"
#include "operator/plan/judge.h"
#include "operator/plan/replica.h"
#include "operator/plan/rootcause.h"
#include "operator/plan/startdeadline.h"
#include "operator/plan/status.h"

#include <string.h>

enum {
    DISRUPTIONS_PER_DAY = 100,
    ADMISSIONS_MAX = 10,
};

/* A rendezvous gives ranks to nodes as they come: only the launcher knows them. */
static int32_t failure_rank(const struct planner *p, const struct judgement *j)
{
    const struct torchrun_config *t = &p->spec->torchrun;
    bool fixed = !t->enabled || p->spec->debug.enabled ||
                 (t->rdzv_backend == RDZV_STATIC && strcmp(t->proc_per_node, "1") == 0);

    if (j->v.rank >= 0)
        return j->v.rank;
    return fixed ? j->slot->order : -1;
}

static void record_failure(struct planner *p, const struct judgement *j)
{
    struct jobstatus *st = &p->st;
    const struct pod *pod = j->slot->pod;
    const struct replica_status *seen = j->slot->seen;
    struct failure *f = arena_new(p->a, struct failure);

    *f = (struct failure){
        .pod = j->slot->name,
        .uid = pod    ? pod->uid
               : seen ? seen->uid
                      : NULL,
        .node = pod ? pod->node : NULL,
        .reason = j->v.reason,
        .message = rootcause_text(j->v.message, p->a),
        .rank = failure_rank(p, j),
        .exit_code = j->v.exit_code,
        .signal = j->v.signal,
        .attempt = st->attempt,
        .time_ms = p->now_ms,
    };
    struct failure *all = arena_array(p->a, JOBSTATUS_FAILURES_MAX, struct failure);
    int drop = st->n_failures == JOBSTATUS_FAILURES_MAX ? 1 : 0;
    for (int i = drop; i < st->n_failures; i++)
        all[i - drop] = st->failures[i];
    st->n_failures -= drop;
    all[st->n_failures++] = *f;
    st->failures = all;
    st->last_failure = f;
    st->last_exit = f->exit_code >= 0 ? arena_printf(p->a, "%d %s", f->exit_code, f->reason) : f->reason;
}

/* "exit code 137 (signal 9): OOMKilled: the last line", as much of it as is known. */
static const char *describe_end(struct planner *p, const struct verdict *v)
{
    static const char *const SAY_NO_MORE[] = {"PermanentExitCode", "RetryableExitCode", "NoProgress",
                                              "InitContainerFailed"};
    const char *reason = v->reason;
    const char *line = rootcause_line(v->message, "", p->a);
    char code[64] = "";

    if (v->exit_code >= 0 && v->signal)
        snprintf(code, sizeof(code), "exit code %d (signal %d)", v->exit_code, v->signal);
    else if (v->exit_code >= 0)
        snprintf(code, sizeof(code), "exit code %d", v->exit_code);
    for (size_t i = 0; i < ARRAY_LEN(SAY_NO_MORE); i++)
        if (strcmp(v->reason, SAY_NO_MORE[i]) == 0)
            reason = "";
    return arena_printf(p->a, "%s%s%s%s%s", code, code[0] && reason[0] ? ": " : "", reason,
                        line[0] ? ": " : "", line);
}

/* The rank names a process. Where no container ended, or an init container did, it is the pod that failed. */
static char *describe(struct planner *p, const struct verdict *v, const struct failure *f)
{
    const char *who = f->rank >= 0 && f->exit_code >= 0 && !v->init ? arena_printf(p->a, "rank %d", f->rank)
                                                                    : arena_printf(p->a, "pod %s", f->pod);

    if (startdeadline_is(f->reason))
        return arena_strdup(p->a, f->message);
    return arena_printf(p->a, "%s%s%s: %s%s%s%s", who, f->node && f->node[0] ? " on node " : "",
                        f->node ? f->node : "", v->init ? "init container " : "", v->init ? v->init : "",
                        v->init ? ": " : "", describe_end(p, v));
}

void restart_next_attempt(struct planner *p)
{
    struct jobstatus *st = &p->st;

    st->attempt = count_up(st->attempt);
    for (int t = 0; t < st->n_tasks; t++) {
        for (int i = 0; i < st->tasks[t].n_replicas; i++) {
            struct replica_status *r = &st->tasks[t].replicas[i];
            r->uid = NULL;
            r->container = NULL;
            r->state = NULL;
            r->exit_code = -1;
        }
    }
    planner_fill_slots(p);
}

/* The gang restarts together; replicas[].restarts is for those replaced alone. */
static void count_task_restarts(struct planner *p)
{
    for (int t = 0; t < p->st.n_tasks; t++)
        p->st.tasks[t].restart_count = count_up(p->st.tasks[t].restart_count);
}

/* A hundred in each day since the job was made; pausing, which clears startTime, takes no day away. */
static bool disruptions_spent(const struct planner *p)
{
    int64_t days = (p->now_ms - p->job->created_ms) / (24LL * 3600 * 1000);

    return p->st.disruption_count >= DISRUPTIONS_PER_DAY * (1 + (days > 0 ? days : 0));
}

static void count_one(struct jobstatus *st, int32_t *counter)
{
    *counter = count_up(*counter);
    st->restarts = count_up(st->restarts);
}

/* Why the job must fail now; NULL: it restarts, and the counter of its class has been raised. */
static const char *count_restart(struct planner *p, const struct judgement *j)
{
    struct jobstatus *st = &p->st;

    if (j->v.class > VERDICT_SUCCESS && j->v.class != VERDICT_PERMANENT && st->attempt == COUNT_MAX)
        return "AttemptLimitExceeded"; /* someone wrote it there; a number for the next one would not be believed */
    switch (j->v.class) {
    case VERDICT_NONE:
    case VERDICT_SUCCESS:
        return NULL;
    case VERDICT_PERMANENT:
        return j->v.reason;
    case VERDICT_DISRUPTION:
        if (disruptions_spent(p))
            return "DisruptionLimitExceeded";
        count_one(st, &st->disruption_count);
        return NULL;
    case VERDICT_ADMISSION:
        if (st->admission_count >= ADMISSIONS_MAX)
            return "AdmissionLimitExceeded";
        count_one(st, &st->admission_count);
        return NULL;
    case VERDICT_OOM:
    case VERDICT_PEER_LOST:
    case VERDICT_RETRYABLE:
    case VERDICT_KILL:
        break;
    }
    if (st->backoff_count >= p->spec->run_policy.backoff_limit)
        return "BackoffLimitExceeded";
    count_one(st, &st->backoff_count);
    return NULL;
}

static void fail_job(struct planner *p, const char *reason, const char *what)
{
    const char *message = what;

    if (strcmp(reason, "BackoffLimitExceeded") == 0)
        message = arena_printf(p->a, "all %d restarts of backoffLimit are used up; %s",
                               p->spec->run_policy.backoff_limit, what);
    else if (strcmp(reason, "DisruptionLimitExceeded") == 0)
        message = arena_printf(
            p->a, "%d disruptions before, and %d are the limit for each day since the job's creation; %s",
            p->st.disruption_count, DISRUPTIONS_PER_DAY, what);
    else if (strcmp(reason, "AdmissionLimitExceeded") == 0)
        message = arena_printf(p->a, "not started or refused by a node %d times before; %s",
                               p->st.admission_count, what);
    status_finish(p, JOB_FAILED, reason, message);
    if (strstr(reason, "LimitExceeded"))
        planner_event(p, true, reason, "%s", message);
}

/* `who` begins at `due`. */
static void announce_restart(struct planner *p, enum verdict_class class, const char *who, int64_t due)
{
    int64_t wait_s = due > p->now_ms ? (due - p->now_ms) / 1000 : 0;
    char when[32] = "now";

    if (wait_s)
        snprintf(when, sizeof(when), "in %lld s", (long long)wait_s);
    if (class == VERDICT_DISRUPTION)
        planner_event(p, false, "Restarting", "%s begins %s; disruption %d does not count to backoffLimit",
                      who, when, p->st.disruption_count);
    else if (class == VERDICT_ADMISSION)
        planner_event(p, false, "Restarting", "%s begins %s; %s %d/%d times", who, when,
                      startdeadline_is(p->st.last_failure->reason) ? "not started or refused by a node"
                                                                   : "refused by a node",
                      p->st.admission_count, ADMISSIONS_MAX);
    else
        planner_event(p, false, "Restarting", "restart %d/%d: %s begins %s", p->st.backoff_count,
                      p->spec->run_policy.backoff_limit, who, when);
}

/* Written down, told and counted. False: with it the job has failed. */
static bool count_failure(struct planner *p, const struct judgement *j)
{
    record_failure(p, j);
    const char *what = describe(p, &j->v, p->st.last_failure);
    planner_event(p, true, startdeadline_is(j->v.reason) ? j->v.reason : "ReplicaFailed", "%s", what);
    planner_condition(p, COND_REPLICA_FAILURE, true, j->v.reason, what);
    const char *failed = count_restart(p, j);
    if (failed)
        fail_job(p, failed, what);
    if (failed == j->v.reason && j->v.init)
        p->st.reason = arena_printf(p->a, "%s %s", failed, j->v.init);
    return !failed;
}

static void end_attempt(struct planner *p, const struct judgement *j)
{
    if (!count_failure(p, j))
        return;
    count_task_restarts(p);
    restart_next_attempt(p);
    announce_restart(p, j->v.class, arena_printf(p->a, "attempt %d", p->st.attempt), backoff_due_ms(&p->st));
}

/* Each for itself, but a permanent code beside stronger evidence is taken for its consequence. Nothing is
 * replaced when one of them is the job's end. */
static void replace_failed(struct planner *p, const struct judgement *all)
{
    for (int i = 0; i < p->n_slots; i++) {
        struct judgement j = {.v = all->verdicts[i], .slot = &p->slots[i]};
        if (j.v.class == VERDICT_PERMANENT)
            j.v.class = VERDICT_RETRYABLE;
        if (j.v.class > VERDICT_SUCCESS && !count_failure(p, &j))
            return;
    }
    for (int i = 0; i < p->n_slots; i++) {
        const struct slot *s = &p->slots[i];
        if (all->verdicts[i].class <= VERDICT_SUCCESS)
            continue;
        replica_write_ahead(p, s);
        announce_restart(p, all->verdicts[i].class, arena_printf(p->a, "pod %s", s->name),
                         backoff_slot_due_ms(&p->st, s->name));
    }
    planner_fill_slots(p);
}

bool restart_judge(struct planner *p)
{
    struct judgement j = judge_attempt(p);
    bool waits = false;

    if (j.slot && replica_can_replace(p, &j))
        replace_failed(p, &j);
    else if (j.slot && !judge_may_act(p, &j))
        waits = true;
    else if (j.slot || startdeadline_check(p, &j))
        end_attempt(p, &j);
    return !waits;
}
