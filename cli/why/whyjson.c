/* whyjson.c - write the answer of `kubectl ptj why` as one JSON object. */
#include "cli/why/whyjson.h"

#include "cli/watch/record.h"
#include "cli/why/answer.h"

static void put_text(cJSON *o, const char *key, const char *text)
{
    if (text && text[0])
        cJSON_AddStringToObject(o, key, text);
}

static void put_known(cJSON *o, const char *key, int64_t value, bool known)
{
    if (known)
        cJSON_AddNumberToObject(o, key, (double)value);
}

static void put_lines(cJSON *o, const char *key, const char *text, struct arena *a)
{
    struct sv rest = sv_from(text), line;

    if (!text[0])
        return;
    cJSON *list = cJSON_AddArrayToObject(o, key);
    while (rest.len && sv_next(&rest, '\n', &line))
        cJSON_AddItemToArray(list, cJSON_CreateString(arena_strndup(a, line.p, line.len)));
}

static cJSON *cause_json(const struct yaml_tree *causes, const struct finding *g, struct arena *a)
{
    cJSON *o = cJSON_CreateObject();

    put_text(o, "kind", CAUSE_KINDS[g->kind]);
    put_text(o, "reason", g->reason);
    put_text(o, "subject", cause_subject(cause_of(causes, g, a), g, a));
    put_text(o, "message", g->message);
    put_text(o, "line", g->line);
    put_text(o, "pod", g->pod);
    put_text(o, "node", g->node);
    put_text(o, "container", g->container);
    if (g->init)
        cJSON_AddBoolToObject(o, "initContainer", true);
    put_known(o, "rank", g->rank, g->rank >= 0);
    put_known(o, "exitCode", g->exit_code, g->exit_code >= 0);
    put_known(o, "signal", g->signal, g->signal > 0);
    put_known(o, "attempt", g->attempt, g->attempt >= 0);
    json_add_time(o, "since", g->since_ms);
    put_known(o, "otherPods", g->others, g->others > 0);
    if (!g->judged)
        cJSON_AddBoolToObject(o, "pending", true);
    return o;
}

static cJSON *pod_json(const struct why_facts *f, const struct yaml_tree *causes, const struct pod *pod,
                       const cJSON *object, struct arena *a)
{
    struct why_facts of_pod = *f;
    cJSON *o = cJSON_CreateObject();

    of_pod.log = NULL; /* it is of one pod */
    const struct finding g = finding_of_pod(&of_pod, pod, object, a);
    put_text(o, "name", pod->name);
    put_text(o, "node", pod->node);
    put_text(o, "phase", json_str(json_child(object, "status"), "phase"));
    put_known(o, "attempt", pod->attempt, pod->attempt >= 0);
    if (g.kind != WHY_HEALTHY)
        cJSON_AddItemToObject(o, "cause", cause_json(causes, &g, a));
    return o;
}

static void put_pods(cJSON *o, const struct why_facts *f, const struct yaml_tree *causes, struct arena *a)
{
    cJSON *list = f->pods ? cJSON_AddArrayToObject(o, "pods") : NULL;
    const cJSON *object;

    cJSON_ArrayForEach(object, f->pods)
    {
        struct err ignored;
        struct pod *pod = pod_decode(object, NULL, &ignored);
        if (pod && same_text(pod->owner_uid, f->job->uid))
            cJSON_AddItemToArray(list, pod_json(f, causes, pod, object, a));
        free(pod);
    }
}

static void put_failures(cJSON *o, const cJSON *status)
{
    const cJSON *failures = json_child(status, "failures"), *failure;
    cJSON *list = cJSON_GetArraySize(failures) ? cJSON_AddArrayToObject(o, "failures") : NULL;

    cJSON_ArrayForEach(failure, failures) cJSON_InsertItemInArray(list, 0, record_failure(failure));
}

static void put_job(cJSON *o, const struct why_facts *f)
{
    const struct jobstatus *st = &f->job->status;

    json_add_time(o, "time", f->now_ms);
    put_text(o, "namespace", f->job->ns);
    put_text(o, "name", f->job->name);
    put_text(o, "uid", f->job->uid);
    put_text(o, "phase", job_phase_name(st->phase));
    put_text(o, "reason", st->reason);
    put_text(o, "ready", st->ready);
    put_known(o, "attempt", st->attempt, st->phase != JOB_NONE);
    put_known(o, "restarts", st->restarts, st->phase != JOB_NONE);
}

static void put_sentences(cJSON *o, const char *key, const char *const *texts, int n)
{
    if (n)
        cJSON_AddItemToObject(o, key, cJSON_CreateStringArray(texts, n));
}

cJSON *whyjson_of(const struct why_facts *f)
{
    cleanup_arena struct arena a = {0};
    const struct answer w = answer_of(f, &a);
    const char *gaps[WHY_GAPS_MAX];
    cJSON *o = cJSON_CreateObject();

    put_job(o, f);
    put_text(o, "summary", w.summary);
    put_text(o, "detail", w.detail);
    if (w.cause) {
        cJSON *cause = cause_json(w.causes, &w.finding, &a);
        put_lines(cause, "log", w.log, &a);
        cJSON_AddItemToObject(o, "cause", cause);
    }
    cJSON *next = cJSON_AddObjectToObject(o, "next");
    put_text(next, "operator", w.operator_next);
    put_text(next, "user", w.then[0] ? arena_printf(&a, "%s\n%s", w.todo, w.then) : w.todo);
    put_pods(o, f, w.causes, &a);
    put_failures(o, f->job->status_tree);
    for (int i = 0; i < f->n_gaps; i++)
        gaps[i] = f->gaps[i];
    put_sentences(o, "notes", w.notes, w.n_notes);
    put_sentences(o, "notRead", gaps, f->n_gaps);
    return o;
}
