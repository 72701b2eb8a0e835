/* plancase.c - golden files to plan_input, plan to document. */
#include "plancase.h"

#include "common/clock.h"
#include "jsontext.h"
#include "operator/plan/plan.h"
#include "podbrief.h"
#include "statusbrief.h"
#include "yamldoc.h"

#include <stdio.h>
#include <string.h>

#define DEFAULT_NOW "2026-01-01T00:10:00Z"

static cJSON *sub(cJSON *o, const char *key)
{
    cJSON *m = cJSON_GetObjectItemCaseSensitive(o, key);

    return m ? m : cJSON_AddObjectToObject(o, key);
}

/* ---- the job */

/* The item of this type in a list of conditions; NULL: none. */
static cJSON *of_type(const cJSON *list, const char *type)
{
    cJSON *item;

    cJSON_ArrayForEach(item, list) if (strcmp(json_str(item, "type"), type) == 0) return item;
    return NULL;
}

static int merge_conditions(cJSON *status, const cJSON *list, struct err *err)
{
    cJSON *have = cJSON_GetObjectItemCaseSensitive(status, "conditions");
    const cJSON *c;

    if (!have)
        have = cJSON_AddArrayToObject(status, "conditions");
    cJSON_ArrayForEach(c, list)
    {
        const char *type = json_str(c, "type");
        if (!type)
            return err_set(err, ERR_INVALID, "status.conditions: expected a type");
        cJSON *old = of_type(have, type);
        if (json_child(c, "gone"))
            cJSON_Delete(cJSON_DetachItemViaPointer(have, old));
        else if (old)
            cJSON_ReplaceItemViaPointer(have, old, cJSON_Duplicate(c, true));
        else
            cJSON_AddItemToArray(have, cJSON_Duplicate(c, true));
    }
    return 0;
}

/* As RFC 7386 specifies, but a condition replaces that of its type, and `gone` takes it away. */
static int merge_job(cJSON *job, const cJSON *patch, struct err *err)
{
    static const char *const MEMBERS[] = {"apiVersion", "kind", "metadata", "spec", "status"};
    cleanup_json cJSON *copy = cJSON_CreateObject();

    for (size_t i = 0; i < ARRAY_LEN(MEMBERS); i++)
        if (json_child(patch, MEMBERS[i]))
            cJSON_AddItemToObject(copy, MEMBERS[i], cJSON_Duplicate(json_child(patch, MEMBERS[i]), true));
    cleanup_json cJSON *conditions = cJSON_DetachItemFromObjectCaseSensitive(
        cJSON_GetObjectItemCaseSensitive(copy, "status"), "conditions");
    yamldoc_merge(job, copy);
    return conditions ? merge_conditions(sub(job, "status"), conditions, err) : 0;
}

/* The job in `doc`, merged over its bases. */
static int merge_bases(const struct plancases *c, const cJSON *doc, cJSON *job, struct err *err)
{
    const cJSON *base;

    cJSON_ArrayForEach(base, json_child(doc, "base"))
    {
        const char *name = base->valuestring ? base->valuestring : "";
        if (!json_child(c->bases, name))
            return err_set(err, ERR_INVALID, "no base \"%s\" in _base", name);
        if (merge_job(job, json_child(c->bases, name), err) < 0)
            return -1;
    }
    return merge_job(job, doc, err);
}

static void default_text(cJSON *o, const char *key, const char *value)
{
    if (!json_child(o, key))
        cJSON_AddStringToObject(o, key, value);
}

static cJSON *whole_job(const struct plancases *c, const cJSON *doc, struct err *err)
{
    cleanup_json cJSON *job = cJSON_CreateObject();

    if (merge_bases(c, doc, job, err) < 0)
        return NULL;
    cJSON *meta = sub(job, "metadata");
    default_text(meta, "namespace", "ns");
    default_text(meta, "uid", "job-uid");
    default_text(meta, "resourceVersion", "77");
    if (!json_child(meta, "generation"))
        cJSON_AddNumberToObject(meta, "generation", 1);
    return TAKE(job);
}

/* ---- the rest of the input */

struct input {
    struct arena arena;
    struct plan_progress progress;
    struct plan_input in;
    struct pod **pods;
    struct child *children[3];
};

/* `brief` NULL: as any other of that name; false: it is not there. */
static struct child *read_child(const cJSON *brief, const char *name, const char *uid, struct err *err)
{
    if (cJSON_IsFalse(brief))
        return NULL;
    cleanup_json cJSON *o = cJSON_CreateObject();
    cJSON *meta = cJSON_AddObjectToObject(o, "metadata");
    char own[160];
    snprintf(own, sizeof(own), "uid-%s", name);
    cJSON_AddStringToObject(meta, "namespace", "ns");
    cJSON_AddStringToObject(meta, "name", name);
    cJSON_AddStringToObject(meta, "uid", own);
    brief_copy(meta, "deletionTimestamp", brief, "terminating");
    brief_copy(sub(meta, "annotations"), ANNOTATION_SPEC_HASH, brief, "hash");
    brief_owner(meta, uid);
    brief_copy(sub(o, "spec"), "replicas", brief, "replicas");
    brief_copy(sub(o, "status"), "availableReplicas", brief, "available");
    brief_copy(sub(o, "status"), "conditions", brief, "conditions");
    return child_decode(o, NULL, err);
}

static void read_problem(const cJSON *doc, struct plan_problem *p)
{
    static const char *const KINDS[] = {"none", "conflict", "refused", "invalid", "failed"};
    const cJSON *brief = json_child(doc, "problem");
    const char *kind = json_str(brief, "kind");
    const char *retry = json_str(brief, "retry");

    for (int i = 0; kind && i < 5; i++)
        if (strcmp(KINDS[i], kind) == 0)
            p->kind = (enum problem_kind)i;
    p->name = json_str(brief, "name");
    p->message = json_str(brief, "message");
    if (retry)
        (void)clock_parse_rfc3339(retry, &p->retry_ms);
}

static int64_t read_time(const cJSON *o, const char *key)
{
    const char *text = json_str(o, key);
    int64_t ms = 0;

    if (text)
        (void)clock_parse_rfc3339(text, &ms);
    return ms;
}

/* progress: {answer: what the launcher serves, written, slowTold}. It counts as one of the attempt and the job that it names. */
static void read_progress(const cJSON *doc, struct arena *a, struct plan_progress *ret)
{
    const cJSON *brief = json_child(doc, "progress");
    const cJSON *answer = json_child(brief, "answer");
    const char *text = answer ? json_print(answer, a) : "";
    const char *uid = json_str(answer, "job");

    ret->attempt = (int32_t)json_i64(answer, "attempt", 0);
    ret->answered =
        jobprogress_answer(sv_from(text), uid ? uid : "", ret->attempt, &ret->answer) == JOBPROGRESS_OK;
    ret->written_ms = read_time(brief, "written");
    ret->slow_reported_ms = read_time(brief, "slowTold");
}

static int read_input(struct input *i, const cJSON *doc, const struct trainjob *job, struct err *err)
{
    const cJSON *brief;
    const char *now = json_str(doc, "now");
    struct plan_input *in = &i->in;

    in->job = job;
    in->status_first = cJSON_IsTrue(json_child(doc, "lost"));
    in->unreadable = json_str(doc, "unreadable");
    in->tensorboard_image =
        cJSON_IsFalse(json_child(doc, "tensorboard")) ? NULL : "docker.io/torchkeeper/tensorboard:test";
    in->launcher_image = "docker.io/torchkeeper/launcher:test";
    (void)clock_parse_rfc3339(now ? now : DEFAULT_NOW, &in->now_ms);
    in->tb_unseen_for_ms = json_i64(doc, "tensorboardUnknown", 0) * 1000;
    in->status_written_ms = read_time(doc, "statusWritten");
    read_progress(doc, &i->arena, &i->progress);
    in->progress = &i->progress;
    i->pods = arena_array(&i->arena, (size_t)cJSON_GetArraySize(json_child(doc, "pods")), struct pod *);
    cJSON_ArrayForEach(brief, json_child(doc, "pods"))
    {
        cleanup_json cJSON *object = brief_pod(brief, job->name, job->uid, job->spec.hash);
        i->pods[in->n_pods] = pod_decode(object, NULL, err);
        if (!i->pods[in->n_pods])
            return -1;
        in->n_pods++;
    }
    in->pods = (const struct pod *const *)i->pods;
    char *tb = arena_printf(&i->arena, "%s-tensorboard", job->name);
    char *rdzv = arena_printf(&i->arena, "%s-rdzv", job->name);
    in->service = i->children[0] = read_child(json_child(doc, "service"), rdzv, job->uid, err);
    if (json_child(doc, "tensorboardService"))
        in->tb_service = i->children[1] =
            read_child(json_child(doc, "tensorboardService"), tb, job->uid, err);
    if (json_child(doc, "tensorboardDeployment"))
        in->tb_deployment = i->children[2] =
            read_child(json_child(doc, "tensorboardDeployment"), tb, job->uid, err);
    read_problem(doc, &in->problem);
    return 0;
}

static void free_input(struct input *i)
{
    for (int k = 0; k < i->in.n_pods; k++)
        free(i->pods[k]);
    for (int k = 0; k < 3; k++)
        free(i->children[k]);
    arena_release(&i->arena);
}

/* ---- the plan as a document */

/* Take the conditions that the job has already out of the list, and mark those that it has and the list lacks:
 * what remains is what changes. */
static void drop_known_conditions(cJSON *status, const cJSON *known)
{
    cJSON *list = cJSON_GetObjectItemCaseSensitive(status, "conditions");
    const cJSON *item;

    if (!list)
        return;
    cJSON_ArrayForEach(item, known)
    {
        const char *type = json_str(item, "type");
        cJSON *have = of_type(list, type);
        if (!have) {
            cJSON *gone = cJSON_CreateObject();
            cJSON_AddStringToObject(gone, "type", type);
            cJSON_AddTrueToObject(gone, "gone");
            cJSON_AddItemToArray(list, gone);
        } else if (cJSON_Compare(have, item, true)) {
            cJSON_Delete(cJSON_DetachItemViaPointer(list, have));
        }
    }
}

/* The conditions of a job that has none yet, as a document of the same form: all False since `now`. */
static cJSON *first_conditions(int64_t now_ms)
{
    static const char *const FIRST[][2] = {
        {"ReplicaFailure", "NoFailure"}, {"Completed", "NotFinished"}, {"Failed", "NotFinished"},
        {"Paused", "NotPaused"},         {"InvalidSpec", "SpecValid"},
    };
    char now[CLOCK_RFC3339_BYTES], text[256];
    cJSON *list = cJSON_CreateArray();

    clock_rfc3339(now_ms, false, now);
    for (size_t i = 0; i < ARRAY_LEN(FIRST); i++) {
        snprintf(text, sizeof(text),
                 "{'type':'%s','status':'False','reason':'%s','message':'','lastTransitionTime':'%s','"
                 "observedGeneration':1}",
                 FIRST[i][0], FIRST[i][1], now);
        cJSON_AddItemToArray(list, jsontext_parse(text));
    }
    return list;
}

static cJSON *action_document(const struct action *act, bool bodies, const cJSON *known, struct arena *a)
{
    static const char *const VERBS[] = {"status", "event", "delete", "create", "patch", "apply", "edit"};
    static const char *const CHILDREN[] = {"pod", "service",       "deployment", "workload",
                                           "job", "networkpolicy", "secret"};
    struct err err;
    cJSON *o = cJSON_CreateObject();

    if (act->kind == ACTION_EVENT) {
        cJSON_AddStringToObject(o, "event",
                                arena_printf(a, "%s %s", act->warning ? "Warning" : "Normal", act->reason));
        cJSON_AddStringToObject(o, "message", act->message);
        return o;
    }
    cJSON *body = act->body ? json_parse(act->body, strlen(act->body), &err) : NULL;
    if (act->kind == ACTION_STATUS) {
        drop_known_conditions(cJSON_GetObjectItemCaseSensitive(body, "status"), known);
        cJSON_AddItemToObject(o, "status", body);
        return o;
    }
    cJSON_AddStringToObject(o, act->force ? "force-delete" : VERBS[act->kind],
                            arena_printf(a, "%s %s%s%s%s%s", CHILDREN[act->child], act->name,
                                         act->uid ? " " : "", act->uid ? act->uid : "",
                                         act->version ? " version " : "", act->version ? act->version : ""));
    static const char *const ATTEMPT[] = {"metadata", "labels", LABEL_ATTEMPT, NULL};
    const cJSON *attempt = json_find(body, ATTEMPT);
    if (attempt)
        cJSON_AddStringToObject(o, "attempt", attempt->valuestring);
    static const char *const RESTART[] = {"metadata", "labels", LABEL_RESTART, NULL};
    const cJSON *restart = json_find(body, RESTART);
    if (restart && strcmp(restart->valuestring, "0") != 0)
        cJSON_AddStringToObject(o, "restart", restart->valuestring);
    if (body && (bodies || act->kind == ACTION_PATCH))
        cJSON_AddItemToObject(o, "body", body);
    else
        cJSON_Delete(body);
    return o;
}

static cJSON *plan_document(const struct plan *plan, int64_t now_ms, bool bodies, const cJSON *known)
{
    cleanup_arena struct arena a = {0};
    cJSON *doc = cJSON_CreateObject();
    cJSON *actions = cJSON_AddArrayToObject(doc, "actions");

    for (int i = 0; i < plan->n_actions; i++)
        cJSON_AddItemToArray(actions, action_document(&plan->actions[i], bodies, known, &a));
    if (plan->requeue_ms)
        cJSON_AddNumberToObject(doc, "requeueInMs", (double)(plan->requeue_ms - now_ms));
    if (plan->pods_first)
        cJSON_AddTrueToObject(doc, "podsFirst");
    if (plan->may_wait && plan->n_actions)
        cJSON_AddTrueToObject(doc, "mayWait");
    return doc;
}

/* The plan alone: all that it was made from is gone by then, as in the operator, where the cache changes meanwhile. */
static int make_plan(const cJSON *job_doc, const cJSON *doc, struct arena *a, struct plan *ret,
                     int64_t *ret_now_ms, struct err *err)
{
    struct input input = {0};
    struct trainjob *job = trainjob_decode(cJSON_Duplicate(job_doc, true), err);

    if (!job)
        return -1;
    int rc = read_input(&input, doc, job, err);
    if (rc == 0)
        plan_trainjob(&input.in, a, ret);
    *ret_now_ms = input.in.now_ms;
    free_input(&input);
    trainjob_free(job);
    return rc;
}

static cJSON *run(const cJSON *job, const cJSON *doc, struct err *err)
{
    static const char *const CONDITIONS[] = {"status", "conditions", NULL};
    cleanup_arena struct arena a = {0};
    struct plan plan;
    int64_t now_ms = 0;

    if (make_plan(job, doc, &a, &plan, &now_ms, err) < 0)
        return NULL;
    cleanup_json cJSON *first = first_conditions(now_ms);
    const cJSON *had = json_find(job, CONDITIONS);
    return plan_document(&plan, now_ms, cJSON_IsTrue(json_child(doc, "bodies")), had ? had : first);
}

/* ---- files */

/* A document with times and status as they are in a cluster. */
static int expand_input(const struct sentences *s, cJSON *doc, struct err *err)
{
    cJSON *status = cJSON_GetObjectItemCaseSensitive(doc, "status");

    times_expand(doc);
    return cJSON_IsObject(status) ? status_expand(s, status, err) : 0;
}

static int is_yaml(const struct dirent *d)
{
    const char *dot = strrchr(d->d_name, '.');

    return d->d_name[0] != '.' && d->d_name[0] != '_' && dot && strcmp(dot, ".yaml") == 0;
}

static int read_base(struct plancases *c, const char *path, const char *name, struct err *err)
{
    cleanup_json cJSON *doc = yamldoc_read(path, err);

    if (!doc || expand_input(&c->sentences, doc, err) < 0)
        return -1;
    cJSON_AddItemToObject(c->bases, name, TAKE(doc));
    return 0;
}

int plancases_open(struct plancases *ret, struct err *err)
{
    struct dirent **files = NULL;
    char path[512];
    int rc = 0;

    *ret = (struct plancases){.bases = cJSON_CreateObject()};
    int n = scandir(PLANCASES_FOLDER "/_base", &files, is_yaml, alphasort);
    if (n < 0 || sentences_read(PLANCASES_FOLDER "/_sentences.yaml", &ret->sentences, err) < 0)
        return n < 0 ? err_set(err, ERR_INVALID, "no folder " PLANCASES_FOLDER "/_base") : -1;
    for (int i = 0; i < n; i++) {
        char name[256];
        snprintf(name, sizeof(name), "%.*s", (int)(strlen(files[i]->d_name) - strlen(".yaml")),
                 files[i]->d_name);
        snprintf(path, sizeof(path), PLANCASES_FOLDER "/_base/%s", files[i]->d_name);
        rc = rc < 0 ? rc : read_base(ret, path, name, err);
        free(files[i]);
    }
    free(files);
    return rc < 0 ? rc : read_base(ret, PLANCASES_FOLDER "/../tutorial/job.yaml", "tutorial", err);
}

void plancases_close(struct plancases *c)
{
    cJSON_Delete(c->bases);
    sentences_free(&c->sentences);
}

int plancases_list(struct dirent ***ret)
{
    return scandir(PLANCASES_FOLDER, ret, is_yaml, alphasort);
}

cJSON *plancase_job(const struct plancases *c, const char *file, struct err *err)
{
    char path[512];

    snprintf(path, sizeof(path), PLANCASES_FOLDER "/%s", file);
    cleanup_json cJSON *doc = yamldoc_read(path, err);
    if (!doc || expand_input(&c->sentences, doc, err) < 0)
        return NULL;
    return whole_job(c, doc, err);
}

/* A misspelt member would be no part of the input, and nobody would see it. */
static int check_members(const cJSON *doc, struct err *err)
{
    static const char MEMBERS[] =
        " base metadata spec status pods service tensorboardService tensorboardDeployment now lost"
        " tensorboard tensorboardUnknown problem progress unreadable statusWritten bodies want ";
    char word[64];
    const cJSON *m;

    cJSON_ArrayForEach(m, doc)
    {
        snprintf(word, sizeof(word), " %s ", m->string);
        if (!strstr(MEMBERS, word))
            return err_set(err, ERR_INVALID, "%s: no such member; README.md lists them", m->string);
    }
    return 0;
}

int plancase_run(const struct plancases *c, cJSON *doc, struct plancase *ret, struct err *err)
{
    cleanup_json cJSON *input = cJSON_CreateObject();
    const cJSON *m;

    *ret = (struct plancase){.doc = doc};
    cJSON_ArrayForEach(m, doc) if (strcmp(m->string, "want") != 0)
        cJSON_AddItemToObject(input, m->string, cJSON_Duplicate(m, true));
    if (check_members(doc, err) < 0 || expand_input(&c->sentences, input, err) < 0)
        return -1;
    ret->job = whole_job(c, input, err);
    ret->plan = ret->job ? run(ret->job, input, err) : NULL;
    return ret->plan ? 0 : -1;
}

int plancase_read(const struct plancases *c, const char *file, struct plancase *ret, struct err *err)
{
    char path[512];

    *ret = (struct plancase){0};
    snprintf(path, sizeof(path), PLANCASES_FOLDER "/%s", file);
    cJSON *doc = yamldoc_read(path, err);
    return doc ? plancase_run(c, doc, ret, err) : -1;
}

void plancase_free(struct plancase *p)
{
    cJSON_Delete(p->doc);
    cJSON_Delete(p->job);
    cJSON_Delete(p->plan);
    *p = (struct plancase){0};
}
