/* jobstatus.c - decode and encode the status of a PyTorchTrainingJob; the tables of its enum values. */
#include "operator/api/jobstatus.h"

#include "common/text.h"
#include "operator/api/decode.h"

#include <stdio.h>
#include <string.h>

static const char *const PHASES[] = {"",          "Pending", "Running", "Paused", "Resuming",
                                     "Succeeded", "Failed",  "Unknown", NULL};
static const char *const CONDITIONS[] = {"Initialized", "Running", "ReplicaFailure", "Completed",
                                         "Failed",      "Paused",  "InvalidSpec",    NULL};
static const char *const REPLICA_PHASE_NAMES[] = {"Creating", "Pending", "Running", "Succeeded",
                                                  "Failed",   "Unknown", "Deleted", NULL};

const char *job_phase_name(enum job_phase p)
{
    return PHASES[p];
}

enum job_phase job_phase_of(const cJSON *status)
{
    int phase = decode_index(PHASES, json_str(status, "phase"));

    return phase < 0 ? JOB_NONE : (enum job_phase)phase;
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
    return decode_index(CONDITIONS, json_str(condition, "type"));
}

enum condition_state condition_state_of(const cJSON *condition)
{
    const char *s = json_str(condition, "status");

    return s && strcmp(s, "True") == 0 ? COND_TRUE : s && strcmp(s, "False") == 0 ? COND_FALSE : COND_UNKNOWN;
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
        struct condition *out = &s->conditions[type];
        out->state = condition_state_of(c);
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
    int phase = decode_index(REPLICA_PHASE_NAMES, json_str(node, "phase"));

    r->name = text(node, "name", a);
    r->uid = text(node, "uid", a);
    r->phase = phase < 0 ? REPLICA_UNKNOWN : (enum replica_phase)phase;
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

/* ---- encode */

/* Repair the UTF-8: messages quote text of other programs, and are cut. */
static void put_any(cJSON *o, const char *key, const char *s)
{
    text_repair(cJSON_AddStringToObject(o, key, s)->valuestring);
}

static void put_text(cJSON *o, const char *key, const char *s)
{
    if (s && s[0])
        put_any(o, key, s);
}

static void put_number(cJSON *o, const char *key, int64_t v)
{
    cJSON_AddNumberToObject(o, key, (double)v);
}

static void put_condition(cJSON *list, enum condition_type t, const struct condition *c)
{
    static const char *const STATES[] = {"", "False", "True", "Unknown"};

    if (c->state == COND_ABSENT)
        return;
    cJSON *item = cJSON_CreateObject();
    cJSON_AddStringToObject(item, "type", CONDITIONS[t]);
    cJSON_AddStringToObject(item, "status", STATES[c->state]);
    put_any(item, "reason", c->reason ? c->reason : "Unknown");
    put_any(item, "message", c->message ? c->message : "");
    json_add_time(item, "lastTransitionTime", c->transition_ms);
    put_number(item, "observedGeneration", c->observed_generation);
    cJSON_AddItemToArray(list, item);
}

/* Each condition keeps its index: otherwise we would rewrite the list whenever another writer reorders it. */
static void put_conditions(cJSON *o, const struct jobstatus *s)
{
    cJSON *list = cJSON_AddArrayToObject(o, "conditions");
    bool put[COND_TYPES] = {false};
    const cJSON *c;

    cJSON_ArrayForEach(c, s->listed)
    {
        int t = condition_type_of(c);
        if (t < 0 && jobstatus_fits(s, c))
            cJSON_AddItemToArray(list, cJSON_Duplicate(c, true));
        else if (t >= 0 && !put[t])
            put_condition(list, (enum condition_type)t, &s->conditions[t]);
        if (t >= 0)
            put[t] = true;
    }
    for (int t = 0; t < COND_TYPES; t++)
        if (!put[t])
            put_condition(list, (enum condition_type)t, &s->conditions[t]);
}

static void put_aggregate(cJSON *o, const struct jobstatus *s)
{
    static const char *const KEYS[REPLICA_PHASES] = {"creating", "pending", "running", "succeeded",
                                                     "failed",   "unknown", "deleted"};
    int counts[REPLICA_PHASES] = {0};

    for (int t = 0; t < s->n_tasks; t++)
        for (int i = 0; i < s->tasks[t].n_replicas; i++)
            counts[s->tasks[t].replicas[i].phase]++;
    cJSON *a = cJSON_AddObjectToObject(o, "aggregate");
    for (int p = 0; p < REPLICA_PHASES; p++)
        put_number(a, KEYS[p], counts[p]);
}

static cJSON *replica_json(const struct replica_status *r)
{
    cJSON *o = cJSON_CreateObject();

    put_text(o, "name", r->name);
    put_text(o, "uid", r->uid);
    put_text(o, "phase", REPLICA_PHASE_NAMES[r->phase]);
    put_number(o, "restarts", r->restarts);
    cJSON *containers = cJSON_AddArrayToObject(o, "containers");
    if (r->container && r->state) {
        cJSON *c = cJSON_CreateObject();
        put_text(c, "name", r->container);
        put_text(c, "state", r->state);
        if (r->exit_code >= 0)
            put_number(c, "exitCode", r->exit_code);
        cJSON_AddItemToArray(containers, c);
    }
    return o;
}

static void put_tasks(cJSON *o, const struct jobstatus *s)
{
    cJSON *tasks = cJSON_AddArrayToObject(o, "tasks");

    for (int t = 0; t < s->n_tasks; t++) {
        const struct task_status *task = &s->tasks[t];
        cJSON *item = cJSON_CreateObject();
        put_text(item, "type", task->type);
        put_number(item, "restartCount", task->restart_count);
        cJSON *replicas = cJSON_AddArrayToObject(item, "replicas");
        for (int i = 0; i < task->n_replicas; i++)
            cJSON_AddItemToArray(replicas, replica_json(&task->replicas[i]));
        cJSON_AddItemToArray(tasks, item);
    }
}

static cJSON *failure_json(const struct failure *f, size_t message_bytes)
{
    char message[JOBSTATUS_MESSAGE_BYTES + 1];
    cJSON *o = cJSON_CreateObject();

    put_text(o, "pod", f->pod);
    put_text(o, "uid", f->uid);
    put_text(o, "node", f->node);
    if (f->rank >= 0)
        put_number(o, "rank", f->rank);
    if (f->exit_code >= 0)
        put_number(o, "exitCode", f->exit_code);
    if (f->signal > 0)
        put_number(o, "signal", f->signal);
    put_text(o, "reason", f->reason);
    if (f->message) {
        /* Keep the end of a message, which is the most informative part, from a whole UTF-8 character on. */
        struct sv tail = text_tail(f->message, message_bytes);
        snprintf(message, sizeof(message), "%.*s", (int)tail.len, tail.p);
        put_text(o, "message", message);
    }
    json_add_time(o, "time", f->time_ms);
    put_number(o, "attempt", f->attempt);
    return o;
}

static void put_failures(cJSON *o, const struct jobstatus *s)
{
    if (s->last_failure)
        cJSON_AddItemToObject(o, "lastFailure", failure_json(s->last_failure, JOBSTATUS_MESSAGE_BYTES));
    if (s->n_failures == 0)
        return;
    cJSON *list = cJSON_AddArrayToObject(o, "failures");
    for (int i = 0; i < s->n_failures; i++)
        cJSON_AddItemToArray(list, failure_json(&s->failures[i], JOBSTATUS_OLD_MESSAGE_BYTES));
}

static void put_avoided(cJSON *o, const struct jobstatus *s)
{
    cJSON *list = s->n_avoided ? cJSON_AddArrayToObject(o, "avoidedNodes") : NULL;

    for (int i = 0; i < s->n_avoided; i++) {
        cJSON *item = cJSON_CreateObject();
        put_any(item, "node", s->avoided[i].node);
        json_add_time(item, "since", s->avoided[i].since_ms);
        if (s->avoided[i].dropped)
            cJSON_AddTrueToObject(item, "dropped");
        cJSON_AddItemToArray(list, item);
    }
}

static void put_tensorboard(cJSON *o, const struct tensorboard_status *t)
{
    if (!t->present)
        return;
    cJSON *tb = cJSON_AddObjectToObject(o, "tensorboard");
    cJSON_AddBoolToObject(tb, "ready", t->ready);
    put_text(tb, "reason", t->reason);
    put_text(tb, "service", t->service);
    put_text(tb, "note", t->note);
}

cJSON *jobstatus_encode(const struct jobstatus *s)
{
    cJSON *o = cJSON_CreateObject();

    put_text(o, "phase", PHASES[s->phase]);
    put_text(o, "reason", s->reason);
    put_number(o, "observedGeneration", s->observed_generation);
    json_add_time(o, "startTime", s->start_ms);
    json_add_time(o, "completionTime", s->completion_ms);
    put_number(o, "attempt", s->attempt);
    put_number(o, "backoffCount", s->backoff_count);
    put_number(o, "disruptionCount", s->disruption_count);
    put_number(o, "admissionCount", s->admission_count);
    put_number(o, "resumeCount", s->resume_count);
    put_number(o, "restarts", s->restarts);
    if (s->ran_attempt >= 0)
        put_number(o, "ranAttempt", s->ran_attempt);
    put_conditions(o, s);
    put_aggregate(o, s);
    put_text(o, "ready", s->ready);
    put_number(o, "replicas", s->replicas);
    put_text(o, "selector", s->selector);
    put_number(o, "gpus", s->gpus);
    put_text(o, "lastExit", s->last_exit);
    put_tasks(o, s);
    put_failures(o, s);
    put_avoided(o, s);
    put_tensorboard(o, &s->tensorboard);
    cJSON_AddItemToObject(o, "progress", jobprogress_encode(&s->progress)); /* NULL adds nothing */
    return o;
}
