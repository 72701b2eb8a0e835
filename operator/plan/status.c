/* status.c - repair, begin, finish and encode a job's status; observe.c fills in the part that follows from
 * the pods. */
#include "operator/plan/status.h"

#include "operator/plan/mergepatch.h"
#include "operator/plan/queue.h"
#include "operator/plan/statusprogress.h"

#include <string.h>

enum { WRITE_SPACING_MS = 1000, CLOCK_SKEW_MAX_MS = 600000 };

/* ---- repair of an edited status, or one with times of a wrong clock */

/* A time far in the future is of a wrong clock, or was edited: delays and deadlines that count from it would
 * be too long. Clocks of two machines may differ a little. */
int64_t status_time(const struct planner *p, int64_t ms)
{
    return ms > p->now_ms + CLOCK_SKEW_MAX_MS ? p->now_ms : ms;
}

static struct failure *mended_failures(struct planner *p, const struct failure *from, int n)
{
    struct failure *to = arena_array(p->a, JOBSTATUS_FAILURES_MAX, struct failure);

    for (int i = 0; i < n; i++) {
        to[i] = from[i];
        to[i].time_ms = status_time(p, from[i].time_ms);
    }
    return to;
}

static void correct_times(struct planner *p)
{
    struct jobstatus *st = &p->st;

    st->start_ms = status_time(p, st->start_ms);
    st->completion_ms = status_time(p, st->completion_ms);
    for (int t = 0; t < COND_TYPES; t++)
        st->conditions[t].transition_ms = status_time(p, st->conditions[t].transition_ms);
    st->failures = mended_failures(p, st->failures, st->n_failures);
    st->progress.time_ms = status_time(p, st->progress.time_ms);
    if (st->last_failure)
        st->last_failure = mended_failures(p, st->last_failure, 1);
}

/* Phase, condition and completionTime record a job's end. If some of them were removed, restore them from the
 * others: no job ends twice. */
static void restore_end(struct planner *p)
{
    struct jobstatus *st = &p->st;

    if (!jobstatus_finished(st) && st->conditions[COND_FAILED].state == COND_TRUE)
        st->phase = JOB_FAILED;
    else if (!jobstatus_finished(st) && st->conditions[COND_COMPLETED].state == COND_TRUE)
        st->phase = JOB_SUCCEEDED;
    if (!jobstatus_finished(st))
        return;
    if (!st->completion_ms)
        st->completion_ms = p->now_ms;
    bool good = st->phase == JOB_SUCCEEDED;
    const char *reason = p->job->status.reason ? p->job->status.reason : "Restored";
    if (st->conditions[COND_RUNNING].state == COND_ABSENT)
        planner_condition(p, COND_RUNNING, false, good ? "JobSucceeded" : "JobFailed", "");
    if (st->conditions[COND_COMPLETED].state == COND_ABSENT)
        planner_condition(p, COND_COMPLETED, good, good ? reason : "JobFailed", "");
    if (st->conditions[COND_FAILED].state == COND_ABSENT)
        planner_condition(p, COND_FAILED, !good, good ? "JobSucceeded" : reason, "");
}

/* ---- begin and finish */

void status_begin(struct planner *p)
{
    const struct jobstatus *old = &p->job->status;

    p->st = *old;
    p->st.reason = NULL;
    p->st.tasks = arena_array(p->a, (size_t)old->n_tasks, struct task_status);
    for (int t = 0; t < old->n_tasks; t++) {
        size_t n = (size_t)old->tasks[t].n_replicas;
        p->st.tasks[t] = old->tasks[t];
        p->st.tasks[t].replicas = arena_array(p->a, n, struct replica_status);
        for (size_t i = 0; i < n; i++)
            p->st.tasks[t].replicas[i] = old->tasks[t].replicas[i];
    }
    correct_times(p);
    restore_end(p);
    if (jobstatus_counted(&p->st) > p->st.restarts)
        p->st.restarts =
            (int32_t)(jobstatus_counted(&p->st) < COUNT_MAX ? jobstatus_counted(&p->st) : COUNT_MAX);
    if (p->st.conditions[COND_RUNNING].state == COND_TRUE)
        p->st.ran_attempt = p->st.attempt;
}

void status_init_conditions(struct planner *p)
{
    static const char *const REASONS[COND_TYPES] = {
        [COND_INITIALIZED] = "CreatingPods",  [COND_RUNNING] = "PodsPending",
        [COND_REPLICA_FAILURE] = "NoFailure", [COND_COMPLETED] = "NotFinished",
        [COND_FAILED] = "NotFinished",        [COND_PAUSED] = "NotPaused",
        [COND_INVALID_SPEC] = "SpecValid",
    };

    for (int t = 0; t < COND_TYPES; t++)
        if (p->st.conditions[t].state == COND_ABSENT)
            planner_condition(p, (enum condition_type)t, false, REASONS[t], "");
}

void status_finish(struct planner *p, enum job_phase phase, const char *reason, const char *message)
{
    bool good = phase == JOB_SUCCEEDED;

    p->st.phase = phase;
    p->st.completion_ms = p->now_ms;
    p->st.reason = reason;
    p->reason_message = message;
    planner_condition(p, COND_RUNNING, false, good ? "JobSucceeded" : "JobFailed", "");
    planner_condition(p, COND_COMPLETED, good, good ? reason : "JobFailed", good ? message : "");
    planner_condition(p, COND_FAILED, !good, good ? "JobSucceeded" : reason, good ? "" : message);
    if (good)
        planner_event(p, false, "Completed", "%s", message);
    else
        planner_event(p, true, "Failed", "%s: %s", reason, message);
}

static bool same_text(const char *a, const char *b)
{
    return strcmp(a ? a : "", b ? b : "") == 0;
}

/* The sum of all counters after which pods are deleted. The status is written before those deletes. */
static int64_t restarts_of(const struct jobstatus *st)
{
    int64_t n = 0;

    for (int t = 0; t < st->n_tasks; t++)
        for (int i = 0; i < st->tasks[t].n_replicas; i++)
            n += st->tasks[t].replicas[i].restarts;
    return n;
}

/* A change of the count in "PodsStarting 3/64" is no transition: each pod that starts would cost a write. Nor is one of
 * Kueue's message in "Queued MESSAGE"; a job that is just Queued has no message yet. */
static const char *awaited_reason(const char *reason)
{
    if (reason && strncmp(reason, QUEUE_REASON " ", strlen(QUEUE_REASON " ")) == 0)
        return QUEUE_REASON;
    bool quiet = reason && (strcmp(reason, QUEUE_REASON) == 0 ||
                            strncmp(reason, STATUS_PODS_STARTING, strlen(STATUS_PODS_STARTING)) == 0);
    return quiet ? NULL : reason;
}

/* Whether the change is one that users or programs wait for: write those without delay. */
static bool is_transition(const struct jobstatus *old, const struct jobstatus *st)
{
    for (int t = 0; t < COND_TYPES; t++)
        if (old->conditions[t].state != st->conditions[t].state)
            return true;
    return old->phase != st->phase || restarts_of(old) != restarts_of(st) || old->attempt != st->attempt ||
           old->start_ms != st->start_ms || old->completion_ms != st->completion_ms ||
           old->resume_count != st->resume_count || old->backoff_count != st->backoff_count ||
           old->disruption_count != st->disruption_count || old->admission_count != st->admission_count ||
           old->observed_generation != st->observed_generation ||
           old->tensorboard.ready != st->tensorboard.ready ||
           !same_text(awaited_reason(old->reason), awaited_reason(st->reason));
}

/* Reasons that also raise an event when they appear: Warnings, except the first four, where the user may
 * have intended the wait. */
static bool raises_event(const char *reason, bool *warning)
{
    static const char *const REASONS[] = {
        QUEUE_REASON,           "SchedulingGated",    "ContainerCreating",
        "InitContainerRunning", QUEUE_REASON_FAILED,  "WorkloadRefused",
        "SidecarNotStarted",    "CrashLoopBackOff",   "ResourceClaimNotCreated",
        "NotScheduled",         "PodHeldByFinalizer", "InvalidSpec",
        "NameConflict",         "PodRefused",         "CreateFailed",
        "ImagePullFailed",      "Unschedulable",      "ClaimNotFound",
        "ClaimNotReady",        "ClaimNotBound",      "CreateContainerConfigError",
        "CreateContainerError", "RunContainerError",  "PodStuckTerminating",
    };
    size_t len = strcspn(reason, " ");

    for (size_t i = 0; i < ARRAY_LEN(REASONS); i++)
        if (strlen(REASONS[i]) == len && strncmp(REASONS[i], reason, len) == 0) {
            *warning = i > 3;
            return true;
        }
    return false;
}

/* Whether the status already has the UIDs of the pods: a pod whose UID it lacks would be created again,
 * uncounted, if it vanished. `replicas` also shows how a pod ended. */
static bool same_pods(const struct jobstatus *old, const struct jobstatus *st)
{
    if (old->n_tasks != st->n_tasks)
        return false;
    for (int t = 0; t < st->n_tasks; t++) {
        const struct task_status *was = &old->tasks[t];
        const struct task_status *is = &st->tasks[t];
        if (was->n_replicas != is->n_replicas || !same_text(was->type, is->type))
            return false;
        for (int i = 0; i < is->n_replicas; i++)
            if (!same_text(was->replicas[i].uid, is->replicas[i].uid))
                return false;
    }
    return true;
}

/* Whether a change causes a write. Details, which no column shows and no decision uses, wait for the next
 * write. The progress has its own rule. */
static bool has_more_than_details(const struct planner *p, const cJSON *diff)
{
    static const char *const DETAILS[] = {"aggregate", "tasks", "ranAttempt", "progress", NULL};
    const cJSON *member;

    cJSON_ArrayForEach(member, diff)
    {
        if (decode_index(DETAILS, member->string) < 0)
            return true;
    }
    return !jobstatus_finished(&p->st) && !same_pods(&p->job->status, &p->st);
}

void status_announce(struct planner *p)
{
    const struct jobstatus *old = &p->job->status;
    const cJSON *c;

    bool warning;

    if (p->st.reason && !same_text(awaited_reason(old->reason), awaited_reason(p->st.reason)) &&
        raises_event(p->st.reason, &warning)) {
        const char *word = arena_strndup(p->a, p->st.reason, strcspn(p->st.reason, " "));
        planner_event(p, warning, word, "%s", p->reason_message ? p->reason_message : word);
    }
    cJSON_ArrayForEach(c, p->st.listed)
    {
        if (condition_type_of(c) < 0 && !jobstatus_fits(&p->st, c))
            planner_event(p, true, "ConditionDropped",
                          "removed %.100s of another controller: the status has no room for it",
                          json_str(c, "type") ? json_str(c, "type") : "one without a type");
    }
    bool tb_new = !same_text(p->st.tensorboard.reason, old->tensorboard.reason);
    if (tb_new && same_text(p->st.tensorboard.reason, "NameConflict"))
        planner_event(p, true, "NameConflict", "%s", p->st.tensorboard.note);
    if (tb_new && same_text(p->st.tensorboard.reason, "NotAvailable"))
        planner_event(p, true, "TensorBoardNotAvailable", "%s", p->st.tensorboard.note);
    if (p->st.tensorboard.ready && !old->tensorboard.ready)
        planner_event(p, false, "TensorBoardReady", "service %s, port 6006", p->st.tensorboard.service);
}

struct action status_action(struct planner *p, const cJSON *diff)
{
    cleanup_json cJSON *doc = cJSON_CreateObject();

    cJSON_AddStringToObject(cJSON_AddObjectToObject(doc, "metadata"), "resourceVersion",
                            p->job->resource_version);
    cJSON_AddItemToObject(doc, "status", cJSON_Duplicate(diff, true));
    return (struct action){.kind = ACTION_STATUS,
                           .child = CHILD_JOB,
                           .name = arena_strdup(p->a, p->job->name),
                           .uid = arena_strdup(p->a, p->job->uid),
                           .body = json_print(doc, p->a)};
}

/* A condition that changed and changed back within one plan did not change. */
static void keep_transition_times(struct planner *p)
{
    for (int t = 0; t < COND_TYPES; t++) {
        const struct condition *old = &p->job->status.conditions[t];
        if (old->state == p->st.conditions[t].state && old->transition_ms)
            p->st.conditions[t].transition_ms = status_time(p, old->transition_ms);
    }
}

/* Whether to delay the first status of a job whose pods precede it a little: often it then reports Running. */
static bool just_begins(const struct planner *p)
{
    return !p->job->status_tree && (p->in->n_pods == p->n_slots || p->others_follow) &&
           p->st.phase == JOB_PENDING && p->st.attempt == 0 && !awaited_reason(p->st.reason);
}

bool status_patch(struct planner *p, struct action *out)
{
    const struct jobstatus *old = &p->job->status;

    p->st.observed_generation = p->job->generation;
    keep_transition_times(p);
    cleanup_json cJSON *status = jobstatus_encode(&p->st);
    cleanup_json cJSON *diff = mergepatch_diff(p->job->status_tree, status);
    bool awaited = is_transition(old, &p->st) && !just_begins(p);
    if (!diff)
        return false;
    bool progressed = json_child(diff, "progress") != NULL;
    bool more = awaited || has_more_than_details(p, diff);
    if (!more && !(progressed && progress_is_due(p)))
        return false;
    int64_t due = p->in->status_written_ms + WRITE_SPACING_MS;
    bool others = p->others_follow && p->creates.n > 0; /* their creation causes a write soon */
    /* A delete removes evidence, so write the status first. */
    if (more && !awaited && p->deletes.n == 0 && (due > p->now_ms || others)) {
        planner_requeue(p, others ? p->now_ms + WRITE_SPACING_MS : due);
        return false;
    }
    p->out->progressed = progressed;
    p->out->progress_only = !more;
    *out = status_action(p, diff);
    return true;
}
