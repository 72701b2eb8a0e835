/* jobstatus_encode.c - encode the status of a PyTorchTrainingJob as JSON for the API server. */
#include "operator/api/jobstatus.h"

#include "common/clock.h"
#include "common/text.h"

#include <stdio.h>

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

static void put_instant(cJSON *o, const char *key, int64_t ms)
{
    char text[CLOCK_RFC3339_BYTES];

    if (ms <= 0)
        return;
    clock_rfc3339(ms, false, text);
    cJSON_AddStringToObject(o, key, text);
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
    cJSON_AddStringToObject(item, "type", condition_type_name(t));
    cJSON_AddStringToObject(item, "status", STATES[c->state]);
    put_any(item, "reason", c->reason ? c->reason : "Unknown");
    put_any(item, "message", c->message ? c->message : "");
    put_instant(item, "lastTransitionTime", c->transition_ms);
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
    put_text(o, "phase", replica_phase_name(r->phase));
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
    put_instant(o, "time", f->time_ms);
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
        put_instant(item, "since", s->avoided[i].since_ms);
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

static void put_progress(cJSON *o, const struct jobprogress *p)
{
    cJSON *progress = jobprogress_encode(p);

    if (progress)
        cJSON_AddItemToObject(o, "progress", progress);
}

cJSON *jobstatus_encode(const struct jobstatus *s)
{
    cJSON *o = cJSON_CreateObject();

    put_text(o, "phase", job_phase_name(s->phase));
    put_text(o, "reason", s->reason);
    put_number(o, "observedGeneration", s->observed_generation);
    put_instant(o, "startTime", s->start_ms);
    put_instant(o, "completionTime", s->completion_ms);
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
    put_progress(o, &s->progress);
    return o;
}
