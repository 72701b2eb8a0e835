/* jobstatus.c - decode the status of a PyTorchTrainingJob; the tables of its enum values. */
#include "operator/api/jobstatus.h"
#include "operator/api/decode.h"

#include <string.h>

static const char *const PHASES[] = {"",         "Pending",   "Running", "Paused",
                                     "Resuming", "Succeeded", "Failed",  "Unknown"};
static const char *const CONDITIONS[] = {"Initialized", "Running", "ReplicaFailure", "Completed",
                                         "Failed",      "Paused",  "InvalidSpec"};
static const char *const REPLICA_PHASE_NAMES[] = {"Creating", "Pending", "Running", "Succeeded",
                                                  "Failed",   "Unknown", "Deleted"};

const char *job_phase_name(enum job_phase p)
{
    return PHASES[p];
}

const char *condition_type_name(enum condition_type t)
{
    return CONDITIONS[t];
}

const char *replica_phase_name(enum replica_phase p)
{
    return REPLICA_PHASE_NAMES[p];
}

static int word_index(const char *const *words, size_t n, const char *s, int fallback)
{
    for (size_t i = 0; s && i < n; i++)
        if (strcmp(words[i], s) == 0)
            return (int)i;
    return fallback;
}

enum job_phase job_phase_of(const cJSON *status)
{
    return (enum job_phase)word_index(PHASES, JOB_PHASES, json_str(status, "phase"), JOB_NONE);
}

static const char *text(const cJSON *node, const char *key, struct arena *a)
{
    const char *s = json_str(node, key);

    return s ? arena_strdup(a, s) : NULL;
}

static int32_t small(const cJSON *node, const char *key, int32_t fallback)
{
    int64_t v = json_i64(node, key, fallback);

    return v >= 0 && v <= COUNT_MAX ? (int32_t)v : fallback;
}

static const cJSON *list(const cJSON *node, const char *key)
{
    const cJSON *l = json_child(node, key);

    return cJSON_IsArray(l) ? l : NULL;
}

int condition_type_of(const cJSON *condition)
{
    return word_index(CONDITIONS, COND_TYPES, json_str(condition, "type"), -1);
}

static size_t text_bytes(const cJSON *condition)
{
    const cJSON *c;
    size_t n = 0;

    cJSON_ArrayForEach(c, condition) n += cJSON_IsString(c) ? strlen(c->valuestring) : 0;
    return n;
}

bool jobstatus_fits(const struct jobstatus *s, const cJSON *condition)
{
    int64_t ms = decode_instant(condition, "lastTransitionTime");
    size_t bytes = text_bytes(condition);
    int n = COND_TYPES + 1;
    bool before = true;
    const cJSON *c;

    cJSON_ArrayForEach(c, s->listed)
    {
        int64_t other_ms = decode_instant(c, "lastTransitionTime");
        before = before && c != condition;
        if (c == condition || condition_type_of(c) >= 0 || other_ms < ms || (other_ms == ms && !before))
            continue;
        bytes += text_bytes(c);
        if (++n > JOBSTATUS_CONDITIONS_MAX)
            return false;
    }
    return bytes <= JOBSTATUS_OTHERS_BYTES && json_str(condition, "type");
}

static void read_conditions(const cJSON *node, struct arena *a, struct jobstatus *s)
{
    const cJSON *c;

    s->listed = list(node, "conditions");
    if (cJSON_GetArraySize(s->listed) > JOBSTATUS_CONDITIONS_MAX)
        s->listed = NULL; /* beyond the CRD's limit: comparing each with all would be slow */
    cJSON_ArrayForEach(c, list(node, "conditions"))
    {
        int type = condition_type_of(c);
        if (type < 0)
            continue;
        const char *state = json_str(c, "status");
        struct condition *out = &s->conditions[type];
        out->state = COND_UNKNOWN;
        if (state && strcmp(state, "True") == 0)
            out->state = COND_TRUE;
        else if (state && strcmp(state, "False") == 0)
            out->state = COND_FALSE;
        out->reason = text(c, "reason", a);
        out->message = text(c, "message", a);
        out->transition_ms = decode_instant(c, "lastTransitionTime");
        out->observed_generation = json_i64(c, "observedGeneration", 0);
    }
}

static void read_failure(const cJSON *node, struct arena *a, struct failure *f)
{
    f->pod = text(node, "pod", a);
    f->uid = text(node, "uid", a);
    f->node = text(node, "node", a);
    f->reason = text(node, "reason", a);
    f->message = text(node, "message", a);
    f->rank = small(node, "rank", -1);
    f->exit_code = small(node, "exitCode", -1);
    f->signal = small(node, "signal", 0);
    f->attempt = small(node, "attempt", 0);
    f->time_ms = decode_instant(node, "time");
}

static void read_failures(const cJSON *node, struct arena *a, struct jobstatus *s)
{
    const cJSON *last = json_child(node, "lastFailure");
    const cJSON *all = list(node, "failures");
    const cJSON *f;

    if (cJSON_IsObject(last)) {
        s->last_failure = arena_new(a, struct failure);
        read_failure(last, a, s->last_failure);
    }
    int n = cJSON_GetArraySize(all);
    int skip = n > JOBSTATUS_FAILURES_MAX ? n - JOBSTATUS_FAILURES_MAX : 0;
    s->failures = arena_array(a, JOBSTATUS_FAILURES_MAX, struct failure);
    cJSON_ArrayForEach(f, all)
    {
        if (skip-- <= 0)
            read_failure(f, a, &s->failures[s->n_failures++]);
    }
}

static void read_avoided(const cJSON *node, struct arena *a, struct jobstatus *s)
{
    const cJSON *item;

    s->avoided = arena_array(a, JOBSTATUS_AVOIDED_MAX, struct avoided_node);
    cJSON_ArrayForEach(item, list(node, "avoidedNodes"))
    {
        struct avoided_node n = {text(item, "node", a), decode_instant(item, "since"),
                                 cJSON_IsTrue(json_child(item, "dropped"))};
        if (n.node && s->n_avoided < JOBSTATUS_AVOIDED_MAX)
            s->avoided[s->n_avoided++] = n;
    }
}

static void read_replica(const cJSON *node, struct arena *a, struct replica_status *r)
{
    const cJSON *container = cJSON_GetArrayItem(list(node, "containers"), 0);

    r->name = text(node, "name", a);
    r->uid = text(node, "uid", a);
    r->phase = (enum replica_phase)word_index(REPLICA_PHASE_NAMES, REPLICA_PHASES, json_str(node, "phase"),
                                              REPLICA_UNKNOWN);
    r->restarts = small(node, "restarts", 0);
    r->container = text(container, "name", a);
    r->state = text(container, "state", a);
    r->exit_code = small(container, "exitCode", -1);
}

static void read_tasks(const cJSON *node, struct arena *a, struct jobstatus *s)
{
    const cJSON *tasks = list(node, "tasks");
    const cJSON *task;
    const cJSON *replica;

    s->tasks = arena_array(a, JOBSTATUS_TASKS_MAX, struct task_status);
    cJSON_ArrayForEach(task, tasks)
    {
        if (s->n_tasks == JOBSTATUS_TASKS_MAX)
            break;
        struct task_status *t = &s->tasks[s->n_tasks++];
        const cJSON *replicas = list(task, "replicas");
        t->type = text(task, "type", a);
        t->restart_count = small(task, "restartCount", 0);
        int n = cJSON_GetArraySize(replicas);
        t->replicas = arena_array(a, (size_t)(n < JOBSTATUS_REPLICAS_MAX ? n : JOBSTATUS_REPLICAS_MAX),
                                  struct replica_status);
        cJSON_ArrayForEach(replica, replicas)
        {
            if (t->n_replicas < JOBSTATUS_REPLICAS_MAX)
                read_replica(replica, a, &t->replicas[t->n_replicas++]);
        }
    }
}

void jobstatus_decode(const cJSON *node, struct arena *a, struct jobstatus *s)
{
    const cJSON *tb = json_child(node, "tensorboard");

    *s = (struct jobstatus){0};
    s->phase = job_phase_of(node);
    s->reason = text(node, "reason", a);
    s->observed_generation = json_i64(node, "observedGeneration", 0);
    s->start_ms = decode_instant(node, "startTime");
    s->completion_ms = decode_instant(node, "completionTime");
    s->attempt = small(node, "attempt", 0);
    s->backoff_count = small(node, "backoffCount", 0);
    s->disruption_count = small(node, "disruptionCount", 0);
    s->admission_count = small(node, "admissionCount", 0);
    s->resume_count = small(node, "resumeCount", 0);
    s->restarts = small(node, "restarts", 0);
    s->ran_attempt = small(node, "ranAttempt", -1);
    s->last_exit = text(node, "lastExit", a);
    s->ready = text(node, "ready", a);
    s->replicas = small(node, "replicas", 0);
    s->selector = text(node, "selector", a);
    s->gpus = json_i64(node, "gpus", 0);
    read_conditions(node, a, s);
    read_failures(node, a, s);
    read_avoided(node, a, s);
    read_tasks(node, a, s);
    jobprogress_decode(json_child(node, "progress"), &s->progress);
    if (cJSON_IsObject(tb)) {
        s->tensorboard.present = true;
        s->tensorboard.ready = cJSON_IsTrue(json_child(tb, "ready"));
        s->tensorboard.reason = text(tb, "reason", a);
        s->tensorboard.service = text(tb, "service", a);
        s->tensorboard.note = text(tb, "note", a);
    }
}

bool jobstatus_pause_begun(const struct jobstatus *s)
{
    const struct condition *c = &s->conditions[COND_PAUSED];

    return c->state == COND_TRUE || (c->reason && strcmp(c->reason, JOBSTATUS_PAUSING) == 0);
}
