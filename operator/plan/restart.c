/* restart.c - what follows from the failures of an attempt. */
#include "operator/plan/restart.h"

#include "operator/plan/exitcode.h"
#include "operator/plan/status.h"

#include <string.h>

enum {
    EVIDENCE_WAIT_MS = 30000, /* peers of a lost rank die of broken connections first */
    DISRUPTIONS_PER_DAY = 100,
    ADMISSIONS_MAX = 10,
};

struct judgement {
    struct verdict v;
    const struct slot *slot;  /* NULL: nothing failed */
    int64_t first_failure_ms; /* the earliest end among the failures; 0: not known */
    bool all_ended;
};

bool restart_slot_done(const struct slot *s)
{
    if (s->pod)
        return s->pod->training.state == CONTAINER_TERMINATED ? s->pod->training.exit_code == 0
                                                              : s->pod->phase == POD_SUCCEEDED;
    return s->seen && s->seen->uid && s->seen->state && strcmp(s->seen->state, "Terminated") == 0 &&
           s->seen->exit_code == 0;
}

static bool is_gone(const struct planner *p, const char *uid)
{
    for (int i = 0; i < p->in->n_gone_uids; i++)
        if (strcmp(p->in->gone_uids[i], uid) == 0)
            return true;
    return false;
}

/* The restart policy of the pod's type turns what happened into what follows. */
static void apply_policy(struct verdict *v, enum restart_policy policy)
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

/* It is here, but its labels say that it is none of this attempt's: someone changed them. */
static bool is_relabelled(const struct planner *p, const char *uid)
{
    for (int i = 0; i < p->in->n_pods; i++)
        if (strcmp(p->in->pods[i]->uid, uid) == 0)
            return true;
    return false;
}

/* A pod that the status knows and the cache does not: ask before deciding. */
static struct verdict judge_missing(struct planner *p, const struct slot *s)
{
    struct verdict none = {.class = VERDICT_NONE, .exit_code = -1, .rank = -1};

    if (!s->seen || !s->seen->uid || restart_slot_done(s))
        return none;
    if (is_gone(p, s->seen->uid) || is_relabelled(p, s->seen->uid))
        return exitcode_lost(s->seen->exit_code, &p->spec->run_policy);
    struct action *check = planner_add(p, &p->checks, ACTION_CHECK);
    check->child = CHILD_POD;
    check->name = s->name;
    check->uid = arena_strdup(p->a, s->seen->uid);
    return none;
}

static struct judgement judge(struct planner *p)
{
    struct judgement j = {.all_ended = true};

    for (int i = 0; i < p->n_slots; i++) {
        const struct slot *s = &p->slots[i];
        struct verdict v = s->pod ? exitcode_verdict(s->pod, &p->spec->run_policy) : judge_missing(p, s);
        apply_policy(&v, s->spec->restart_policy);
        if (v.class == VERDICT_NONE && !restart_slot_done(s))
            j.all_ended = false;
        if (v.class <= VERDICT_SUCCESS)
            continue;
        int64_t finished = v.finished_ms && v.finished_ms < p->now_ms ? v.finished_ms : p->now_ms;
        if (!v.finished_ms)
            finished = 0; /* nothing to count from: no wait, or it would begin anew in every pass */
        if (!j.slot || finished < j.first_failure_ms)
            j.first_failure_ms = finished;
        if (!j.slot || v.class > j.v.class) {
            j.v = v;
            j.slot = s;
        }
    }
    return j;
}

static int32_t failure_rank(const struct planner *p, const struct judgement *j)
{
    if (j->v.rank >= 0)
        return j->v.rank;
    bool one_each = !p->spec->torchrun.present || strcmp(p->spec->torchrun.proc_per_node, "1") == 0;
    return one_each ? j->slot->order : -1;
}

static void record_failure(struct planner *p, const struct judgement *j)
{
    struct jobstatus *st = &p->st;
    const struct pod *pod = j->slot->pod;
    const char *uid = pod ? pod->uid : j->slot->seen->uid;
    struct failure *f = arena_new(p->a, struct failure);

    *f = (struct failure){
        .pod = j->slot->name,
        .uid = uid,
        .node = pod ? pod->node : NULL,
        .reason = j->v.reason,
        .message = j->v.message,
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

static char *describe(struct planner *p, const struct failure *f)
{
    char code[64] = "";

    if (f->exit_code >= 0 && f->signal)
        snprintf(code, sizeof(code), " with exit code %d (signal %d)", f->exit_code, f->signal);
    else if (f->exit_code >= 0)
        snprintf(code, sizeof(code), " with exit code %d", f->exit_code);
    return arena_printf(p->a, "pod %s failed%s%s%s: %s", f->pod, code,
                        f->node && f->node[0] ? " on node " : "", f->node ? f->node : "", f->reason);
}

void restart_next_attempt(struct planner *p)
{
    struct jobstatus *st = &p->st;

    st->attempt++;
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
        p->st.tasks[t].restart_count++;
}

static bool oom_again(const struct planner *p, const struct judgement *j)
{
    const struct failure *last = p->st.last_failure;

    return j->v.class == VERDICT_OOM && j->slot->spec->restart_policy == RESTART_EXIT_CODE && last &&
           last->reason && strcmp(last->reason, "OOMKilled") == 0 && last->pod &&
           strcmp(last->pod, j->slot->name) == 0;
}

/* A hundred in each day since the job was made; pausing, which clears startTime, takes no day away. */
static bool disruptions_spent(const struct planner *p)
{
    int64_t days = 1 + (p->now_ms - p->job->created_ms) / (24LL * 3600 * 1000);

    return p->st.disruption_count >= DISRUPTIONS_PER_DAY * days;
}

/* Why the job must fail now; NULL: it restarts, and the counter of its class has been raised. */
static const char *count_restart(struct planner *p, const struct judgement *j, bool oom_final)
{
    struct jobstatus *st = &p->st;

    switch (j->v.class) {
    case VERDICT_NONE:
    case VERDICT_SUCCESS:
        return NULL;
    case VERDICT_PERMANENT:
        return j->v.reason;
    case VERDICT_DISRUPTION:
        if (disruptions_spent(p))
            return "DisruptionLimitExceeded";
        st->disruption_count++;
        return NULL;
    case VERDICT_ADMISSION:
        if (st->admission_count >= ADMISSIONS_MAX)
            return "AdmissionLimitExceeded";
        st->admission_count++;
        return NULL;
    case VERDICT_OOM:
        if (oom_final)
            return "OOMKilled";
        break;
    case VERDICT_PEER_LOST:
    case VERDICT_RETRYABLE:
    case VERDICT_KILL:
        break;
    }
    if (st->backoff_count >= p->spec->run_policy.backoff_limit)
        return "BackoffLimitExceeded";
    st->backoff_count++;
    return NULL;
}

static void fail_job(struct planner *p, const char *reason, bool oom_final, const char *what)
{
    const char *message = what;

    if (strcmp(reason, "BackoffLimitExceeded") == 0)
        message = arena_printf(p->a, "all %d restarts of backoffLimit are used up; %s",
                               p->spec->run_policy.backoff_limit, what);
    if (oom_final)
        message = arena_printf(p->a, "out of memory twice in a row; %s", what);
    status_finish(p, JOB_FAILED, reason, message);
    if (strcmp(reason, "BackoffLimitExceeded") == 0)
        planner_event(p, true, reason, "%s", message);
}

static void announce_restart(struct planner *p, enum verdict_class class)
{
    int64_t due = restart_due_ms(&p->st);
    int64_t wait_s = due > p->now_ms ? (due - p->now_ms) / 1000 : 0;
    char when[32] = "now";

    if (wait_s)
        snprintf(when, sizeof(when), "in %lld s", (long long)wait_s);
    if (class == VERDICT_DISRUPTION)
        planner_event(p, false, "Restarting",
                      "attempt %d begins %s; disruption %d does not count to backoffLimit", p->st.attempt,
                      when, p->st.disruption_count);
    else if (class == VERDICT_ADMISSION)
        planner_event(p, false, "Restarting", "attempt %d begins %s; refused by a node %d/%d times",
                      p->st.attempt, when, p->st.admission_count, ADMISSIONS_MAX);
    else
        planner_event(p, false, "Restarting", "restart %d/%d: attempt %d begins %s", p->st.backoff_count,
                      p->spec->run_policy.backoff_limit, p->st.attempt, when);
}

void restart_judge(struct planner *p)
{
    struct judgement j = judge(p);

    if (!j.slot)
        return;
    bool at_once = j.v.class >= VERDICT_KILL;
    int64_t wait_end = j.first_failure_ms + EVIDENCE_WAIT_MS;
    if (!at_once && !j.all_ended && p->now_ms < wait_end) {
        planner_requeue(p, wait_end);
        return;
    }
    bool oom_final = oom_again(p, &j);
    record_failure(p, &j);
    const char *what = describe(p, p->st.last_failure);
    planner_event(p, true, "ReplicaFailed", "%s", what);
    planner_condition(p, COND_REPLICA_FAILURE, true, j.v.reason, what);
    const char *failed = count_restart(p, &j, oom_final);
    if (failed) {
        fail_job(p, failed, oom_final, what);
        return;
    }
    count_task_restarts(p);
    restart_next_attempt(p);
    announce_restart(p, j.v.class);
}
