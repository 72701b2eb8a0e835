/* restart.c - after a failure, or a start that takes too long: continue, wait, restart or fail; the counters,
 * and the delay of the next attempt. */
#include "operator/plan/restart.h"

#include "common/backoff.h"
#include "operator/plan/avoid.h"
#include "operator/plan/gang.h"
#include "operator/plan/rootcause.h"
#include "operator/plan/status.h"

#include <string.h>

enum {
    DISRUPTIONS_PER_DAY = 100,
    ADMISSIONS_MAX = 10,
    FIRST_DELAY_MS = 10000,
    DELAY_MAX_MS = 600000,
    GOOD_RUN_MS = 600000,
};

static const char LATE_START[] = "StartDeadlineExceeded";

/* ---- the delay of a restart */

/* The delay after the n-th consecutive failure: 0, 10 s, 20 s, 40 s ... 10 min. */
static int64_t delay_ms(int in_a_row)
{
    return in_a_row <= 1 ? 0 : backoff_delay_ms(FIRST_DELAY_MS, DELAY_MAX_MS, in_a_row - 2);
}

/* The delay after the failure at `last`. Failures are consecutive if each attempt failed within 10 min of its
 * start. The status keeps ten; the delay is longest after eight. Disruptions cause no delay and do not
 * interrupt the sequence. `pod`: count only its failures; NULL: all. */
static int64_t delay_after(const struct jobstatus *st, int last, const char *pod)
{
    int64_t earlier = 0;
    int in_a_row = 0;

    for (int i = 0; i <= last; i++) {
        const struct failure *f = &st->failures[i];
        if (exitcode_is_disruption(f->reason) || (pod && (!f->pod || strcmp(f->pod, pod) != 0)))
            continue;
        bool good_run = earlier && f->time_ms - (earlier + delay_ms(in_a_row)) >= GOOD_RUN_MS;
        in_a_row = good_run ? 1 : in_a_row + 1;
        earlier = f->time_ms;
    }
    return delay_ms(in_a_row);
}

int64_t restart_due_ms(const struct jobstatus *st)
{
    const struct failure *last = st->last_failure;

    if (!last || last->attempt != st->attempt - 1 || last->time_ms < st->start_ms ||
        exitcode_is_disruption(last->reason))
        return 0;
    return last->time_ms + delay_after(st, st->n_failures - 1, NULL);
}

int64_t restart_slot_due_ms(const struct jobstatus *st, const char *pod)
{
    for (int i = st->n_failures - 1; i >= 0; i--) {
        const struct failure *f = &st->failures[i];
        if (f->attempt == st->attempt && f->pod && strcmp(f->pod, pod) == 0)
            return exitcode_is_disruption(f->reason) ? 0 : f->time_ms + delay_after(st, i, pod);
    }
    return 0;
}

/* ---- startDeadlineSeconds */

static bool is_late_start(const char *reason)
{
    return reason && strcmp(reason, LATE_START) == 0;
}

static int64_t later(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* Since when the attempt has waited to run. 0: it has no pod, so it holds no resources that the deadline
 * could free. */
static int64_t waiting_since(struct planner *p)
{
    const struct jobstatus *st = &p->st;
    int64_t created = planner_oldest_ms(p);

    if (created == INT64_MAX)
        return 0;
    p->out->seen.waiting_ms = planner_first_seen(p, p->in->seen.waiting_ms, p->now_ms);
    created = planner_first_seen(p, p->out->seen.waiting_ms, created);
    /* Not before the end of the last attempt: creation times are of the API server's clock, which may be behind. */
    if (st->last_failure && st->last_failure->attempt == st->attempt - 1)
        created = later(created, later(st->last_failure->time_ms, restart_due_ms(st)));
    for (int i = 0; i < p->n_slots; i++)
        if (!p->slots[i].pod)
            created = later(created, restart_slot_due_ms(st, p->slots[i].name));
    created = later(created, st->conditions[COND_RUNNING].transition_ms);
    return created < p->now_ms ? created : p->now_ms;
}

static const char *why(struct planner *p, const struct slot *s)
{
    if (!s->pod)
        return "it could not be created";
    struct waiting w = planner_waiting(p, s);
    if (w.reason)
        return w.message;
    return s->pod->training.reason[0] ? s->pod->training.reason : "it is pending";
}

/* Whether pods of this job may hold nodes that another job's pods wait for, while these wait for that job's:
 * nobody starts its pods together, and a pod finds no node. */
static bool may_block_others(const struct planner *p)
{
    bool unschedulable = false;

    if (p->n_slots == 1 || gang_of(p) != GANG_NONE)
        return false;
    for (int i = 0; i < p->n_slots; i++) {
        const struct slot *s = &p->slots[i];
        if (gang_is_theirs(s->spec->template) || (s->pod && s->pod->unplaced == UNPLACED_GATE))
            return false;
        unschedulable |= s->pod && s->pod->unplaced == UNPLACED_UNSCHEDULABLE;
    }
    return unschedulable;
}

/* How long the attempt may wait to run; 0: as long as it takes. The operator's own deadline is up to twice as
 * long, by the job and the attempt, so that of two jobs that wait for each other one gives up first. */
static int64_t start_limit_ms(const struct planner *p)
{
    const struct opt_i64 *own = &p->spec->run_policy.start_deadline_s;
    int64_t ms = p->in->gangs.start_deadline_s * 1000;
    uint64_t h = (uint64_t)p->st.attempt;

    if (own->set)
        return own->v * 1000;
    if (!ms || !may_block_others(p))
        return 0;
    for (const char *c = p->job->uid; *c; c++)
        h = h * 31 + (unsigned char)*c;
    return ms + ms * (int64_t)(h % 1000) / 1000;
}

static bool check_start(struct planner *p, struct judgement *ret)
{
    const struct opt_i64 *own = &p->spec->run_policy.start_deadline_s;
    const struct slot *missing = NULL;
    int64_t limit_ms = start_limit_ms(p);
    int started = 0;

    if (!limit_ms || p->spec->debug.enabled || p->st.conditions[COND_RUNNING].state == COND_TRUE)
        return false;
    for (int i = 0; i < p->n_slots; i++) {
        const struct slot *s = &p->slots[i];
        if (planner_slot_done(s) || (s->pod && pod_is_running(s->pod)))
            started++;
        else if (avoid_holds(s))
            return false; /* that wait is shorter, and not counted */
        else if (!missing)
            missing = s;
    }
    int64_t since = waiting_since(p);
    bool enough = p->spec->elastic.enabled && started >= p->spec->elastic.min;
    if (!missing || !since || enough)
        return false;
    if (!planner_is_due(p, since + limit_ms))
        return false;
    ret->slot = missing;
    ret->v = (struct verdict){.class = own->set ? VERDICT_ADMISSION : VERDICT_UNCOUNTED,
                              .reason = LATE_START,
                              .exit_code = -1,
                              .rank = -1};
    ret->v.message =
        arena_printf(p->a, "%d of %d pods ran when %s (%lld) were over; pod %s: %s", started, p->n_slots,
                     own->set ? "startDeadlineSeconds" : "the seconds of --gang-start-deadline",
                     (long long)(limit_ms / 1000), missing->name, why(p, missing));
    judge_apply_policy(&ret->v, missing->spec->restart_policy);
    return true;
}

/* ---- counters and reports */

/* With a rendezvous, ranks depend on the order of arrival, and only the launcher knows them. */
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
    if (st->n_failures == JOBSTATUS_FAILURES_MAX)
        memmove(st->failures, st->failures + 1, (size_t)--st->n_failures * sizeof(*f));
    st->last_failure = f;
    st->failures[st->n_failures] = *f;
    st->failures[st->n_failures++].message = rootcause_brief(j->v.message, p->a);
    st->last_exit = f->exit_code >= 0 ? arena_printf(p->a, "%d %s", f->exit_code, f->reason) : f->reason;
}

/* "exit code 137 (signal 9): OOMKilled: the last line", without unknown parts. */
static const char *describe_end(struct planner *p, const struct verdict *v)
{
    static const char *const SAY_NO_MORE[] = {"PermanentExitCode", "RetryableExitCode", "NoProgress",
                                              "InitContainerFailed", NULL};
    const char *reason = decode_index(SAY_NO_MORE, v->reason) < 0 ? v->reason : "";
    const char *line = rootcause_line(v->message, "", p->a);
    const char *code = v->exit_code >= 0 ? rootcause_end(v->exit_code, v->signal, p->a) : "";

    return arena_printf(p->a, "%s%s%s%s%s", code, code[0] && reason[0] ? ": " : "", reason,
                        line[0] ? ": " : "", line);
}

/* Names the rank; or the pod, if no container ended, an init container failed, or the message names the rank. */
static char *describe(struct planner *p, const struct verdict *v, const struct failure *f)
{
    const bool by_rank =
        f->rank >= 0 && f->exit_code >= 0 && !v->init && !rootcause_names(f->message, f->rank);
    const char *who = by_rank ? arena_printf(p->a, "rank %d", f->rank) : arena_printf(p->a, "pod %s", f->pod);

    if (is_late_start(f->reason))
        return arena_strdup(p->a, f->message);
    return arena_printf(p->a, "%s%s%s: %s%s%s%s", who, f->node && f->node[0] ? " on node " : "",
                        f->node ? f->node : "", v->init ? "init container " : "", v->init ? v->init : "",
                        v->init ? ": " : "", describe_end(p, v));
}

static void forget_pod(struct replica_status *r)
{
    r->uid = NULL;
    r->container = NULL;
    r->state = NULL;
    r->exit_code = -1;
}

void restart_next_attempt(struct planner *p)
{
    struct jobstatus *st = &p->st;

    st->attempt = count_up(st->attempt);
    for (int t = 0; t < st->n_tasks; t++)
        for (int i = 0; i < st->tasks[t].n_replicas; i++)
            forget_pod(&st->tasks[t].replicas[i]);
    planner_fill_slots(p);
}

/* The whole gang restarts; replicas[].restarts counts only pods that were replaced alone. */
static void count_task_restarts(struct planner *p)
{
    for (int t = 0; t < p->st.n_tasks; t++)
        p->st.tasks[t].restart_count = count_up(p->st.tasks[t].restart_count);
}

/* A hundred per day since the job's creation; pauses, which clear startTime, do not change that. */
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

/* Why the job fails now; NULL: it restarts, and the counter of the failure's class was incremented. */
static const char *count_restart(struct planner *p, const struct judgement *j)
{
    struct jobstatus *st = &p->st;

    if (j->v.class > VERDICT_SUCCESS && j->v.class != VERDICT_PERMANENT && j->v.class != VERDICT_FAIL_JOB &&
        st->attempt == COUNT_MAX)
        return "AttemptLimitExceeded"; /* an edited status; a larger number would not be accepted */
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
    case VERDICT_FAIL_JOB:
        return "PodFailurePolicy";
    case VERDICT_UNCOUNTED:
        st->restarts = count_up(st->restarts);
        return NULL;
    case VERDICT_COUNTED:
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
            p->a, "%d disruptions before; the limit is %d for each day since the job's creation; %s",
            p->st.disruption_count, DISRUPTIONS_PER_DAY, what);
    else if (strcmp(reason, "AdmissionLimitExceeded") == 0)
        message = arena_printf(p->a, "not started or refused by a node %d times before; %s",
                               p->st.admission_count, what);
    status_finish(p, JOB_FAILED, reason, message);
    if (strstr(reason, "LimitExceeded"))
        planner_event(p, true, reason, "%s", message);
}

/* Add the event that `who` begins at `due`. */
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
                      is_late_start(p->st.last_failure->reason) ? "not started or refused by a node"
                                                                : "refused by a node",
                      p->st.admission_count, ADMISSIONS_MAX);
    else if (class == VERDICT_UNCOUNTED)
        planner_event(p, false, "Restarting", "%s begins %s; not counted", who, when);
    else
        planner_event(p, false, "Restarting", "restart %d/%d: %s begins %s", p->st.backoff_count,
                      p->spec->run_policy.backoff_limit, who, when);
}

/* Record, report and count the failure. False: the job fails. */
static bool count_failure(struct planner *p, const struct judgement *j)
{
    record_failure(p, j);
    const char *what = describe(p, &j->v, p->st.last_failure);
    planner_event(p, true, is_late_start(j->v.reason) ? j->v.reason : "ReplicaFailed", "%s", what);
    planner_condition(p, COND_REPLICA_FAILURE, true, j->v.reason, what);
    const char *failed = count_restart(p, j);
    if (failed)
        fail_job(p, failed, j->v.rule ? j->v.rule : what);
    else
        avoid_consider(p, j);
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
    announce_restart(p, j->v.class, arena_printf(p->a, "attempt %d", p->st.attempt), restart_due_ms(&p->st));
}

void restart_replace_pod(struct planner *p, const struct slot *s)
{
    struct task_status *task = planner_task(p, s->spec->type);

    if (!task || s->index >= task->n_replicas)
        return;
    struct replica_status *r = &task->replicas[s->index];
    if (s->pod && s->pod->restart > r->restarts)
        r->restarts = s->pod->restart;
    r->restarts = count_up(r->restarts);
    forget_pod(r);
    task->restart_count = count_up(task->restart_count);
}

/* Replace each failed pod. A permanent exit code beside stronger evidence counts as its consequence. If one
 * failure ends the job, nothing is replaced. */
static void replace_failed(struct planner *p, const struct judgement *all)
{
    for (int i = 0; i < p->n_slots; i++) {
        struct judgement j = {.v = all->verdicts[i], .slot = &p->slots[i], .verdicts = all->verdicts};
        if (j.v.class == VERDICT_PERMANENT)
            j.v.class = VERDICT_RETRYABLE;
        if (j.v.class > VERDICT_SUCCESS && !count_failure(p, &j))
            return;
    }
    for (int i = 0; i < p->n_slots; i++) {
        const struct slot *s = &p->slots[i];
        if (all->verdicts[i].class <= VERDICT_SUCCESS)
            continue;
        restart_replace_pod(p, s);
        announce_restart(p, all->verdicts[i].class, arena_printf(p->a, "pod %s", s->name),
                         restart_slot_due_ms(&p->st, s->name));
    }
    planner_fill_slots(p);
}

bool restart_judge(struct planner *p)
{
    struct judgement j = judge_attempt(p);
    bool waits = false;

    if (j.slot && judge_can_replace(p, &j))
        replace_failed(p, &j);
    else if (j.slot && !judge_may_act(p, &j))
        waits = true;
    else if (j.slot || check_start(p, &j))
        end_attempt(p, &j);
    return !waits;
}
