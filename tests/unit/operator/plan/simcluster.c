/* simcluster.c - the API server's side: a snapshot for plan, and what its actions do. */
#include "simcluster.h"
#include "common/clock.h"
#include "simdice.h"
#include "test.h"
#include "yamldoc.h"

#include <stdio.h>
#include <string.h>

/* For so long one operator leads. */
enum { TERM_MS = 600000 };

cJSON *sim_get(const cJSON *node, const char *key)
{
    return cJSON_GetObjectItemCaseSensitive(node, key);
}

void sim_put(cJSON *object, const char *key, cJSON *value)
{
    cJSON_DeleteItemFromObjectCaseSensitive(object, key);
    if (value)
        cJSON_AddItemToObject(object, key, value);
}

cJSON *sim_instant(const struct sim *s, int64_t after_ms)
{
    char text[CLOCK_RFC3339_BYTES];

    clock_rfc3339(s->now_ms + after_ms, false, text);
    return cJSON_CreateString(text);
}

cJSON *sim_status(const struct sim *s)
{
    return sim_get(s->job, "status");
}

void sim_touch_job(struct sim *s, bool spec)
{
    cJSON *meta = sim_get(s->job, "metadata");
    char text[16];

    snprintf(text, sizeof(text), "%d", atoi(json_str(meta, "resourceVersion")) + 1);
    sim_put(meta, "resourceVersion", cJSON_CreateString(text));
    if (spec)
        sim_put(meta, "generation", cJSON_CreateNumber((double)json_i64(meta, "generation", 0) + 1));
}

void sim_free(struct sim *s)
{
    cJSON_Delete(s->job);
    cJSON_Delete(s->pods);
    cJSON_Delete(s->service);
    cJSON_Delete(s->tb_service);
    cJSON_Delete(s->deployment);
}

struct sim_view sim_now(const struct sim *s)
{
    return (struct sim_view){s->job, s->pods};
}

/* ---- a pass */

static struct child *child_of(const cJSON *object)
{
    struct err err;

    return object ? child_decode(object, NULL, &err) : NULL;
}

struct sim_pass *sim_plan(struct sim *s, struct sim_view view)
{
    struct sim_pass *p = calloc(1, sizeof(*p));
    const cJSON *pod;
    struct err err;

    assert_non_null(p);
    p->job = trainjob_decode(cJSON_Duplicate(view.job, true), &err);
    assert_non_null(p->job);
    cJSON_ArrayForEach(pod, view.pods)
    {
        assert_true(p->in.n_pods < SIM_PODS_MAX);
        p->pods[p->in.n_pods] = pod_decode(pod, NULL, &err);
        assert_non_null(p->pods[p->in.n_pods]);
        p->in.n_pods++;
    }
    p->in.job = p->job;
    p->in.pods = (const struct pod *const *)p->pods;
    p->in.service = p->children[0] = child_of(s->service);
    p->in.tb_service = p->children[1] = child_of(s->tb_service);
    p->in.tb_deployment = p->children[2] = child_of(s->deployment);
    p->in.now_ms = s->now_ms;
    p->in.status_written_ms = s->status_written_ms;
    p->in.tensorboard_image = "tensorboard";
    p->in.launcher_image = "launcher";
    /* Another operator leads now and then: one that gives jobs a key, or one with --job-keys=false. */
    p->in.guards = (struct plan_guards){
        .isolate = true, .operator_ns = "ops", .new_key = s->now_ms / TERM_MS % 2 ? "k" : NULL};
    plan_trainjob(&p->in, &p->arena, &p->plan);
    return p;
}

void sim_pass_free(struct sim_pass *p)
{
    trainjob_free(p->job);
    for (int i = 0; i < p->in.n_pods; i++)
        free(p->pods[i]);
    for (int i = 0; i < 3; i++)
        free(p->children[i]);
    arena_release(&p->arena);
    free(p);
}

/* ---- its actions */

static cJSON *pod_named(const struct sim *s, const char *name)
{
    cJSON *pod;

    cJSON_ArrayForEach(pod, s->pods)
    {
        if (strcmp(json_str(sim_get(pod, "metadata"), "name"), name) == 0)
            return pod;
    }
    return NULL;
}

static const char *uid_of(const cJSON *object)
{
    return json_str(sim_get(object, "metadata"), "uid");
}

void sim_remove_pod(struct sim *s, cJSON *pod)
{
    cJSON_Delete(cJSON_DetachItemViaPointer(s->pods, pod));
}

static bool write_status(struct sim *s, cJSON *body)
{
    const char *version = json_str(sim_get(s->job, "metadata"), "resourceVersion");

    assert_non_null(json_str(sim_get(body, "metadata"), "resourceVersion"));
    if (strcmp(json_str(sim_get(body, "metadata"), "resourceVersion"), version) != 0)
        return false;
    if (!sim_status(s))
        cJSON_AddObjectToObject(s->job, "status");
    yamldoc_merge(sim_status(s), sim_get(body, "status"));
    sim_touch_job(s, false);
    s->status_written_ms = s->now_ms;
    return true;
}

static cJSON **child_place(struct sim *s, const struct action *act)
{
    if (act->child == CHILD_DEPLOYMENT)
        return &s->deployment;
    return strstr(act->name, "-rdzv") ? &s->service : &s->tb_service;
}

static bool create(struct sim *s, const struct action *act, cJSON *body)
{
    cJSON *meta = sim_get(body, "metadata");
    char uid[16];

    assert_string_equal(json_str(meta, "name"), act->name);
    snprintf(uid, sizeof(uid), "u%d", ++s->last_uid);
    sim_put(meta, "uid", cJSON_CreateString(uid));
    sim_put(meta, "creationTimestamp", sim_instant(s, 0));
    if (act->child == CHILD_POD) {
        if (pod_named(s, act->name))
            return false;
        cJSON_AddObjectToObject(body, "status");
        cJSON_AddItemToArray(s->pods, cJSON_Duplicate(body, true));
        return true;
    }
    if (act->child == CHILD_POLICY || act->child == CHILD_KEY)
        return true; /* it is made, or it is there */
    if (*child_place(s, act))
        return false;
    *child_place(s, act) = cJSON_Duplicate(body, true);
    return true;
}

void sim_delete_pod(struct sim *s, cJSON *pod, bool force)
{
    cJSON *meta = sim_get(pod, "metadata");

    if (force || !json_str(sim_get(pod, "spec"), "nodeName"))
        sim_remove_pod(s, pod);
    else if (!sim_get(meta, "deletionTimestamp"))
        sim_put(meta, "deletionTimestamp", sim_instant(s, 30000));
}

static bool delete_it(struct sim *s, const struct action *act)
{
    if (act->child == CHILD_JOB) {
        assert_string_equal(act->uid, uid_of(s->job));
        cJSON_Delete(s->job);
        s->job = NULL;
        return false; /* nothing more to do for it */
    }
    if (act->child == CHILD_POD) {
        cJSON *pod = pod_named(s, act->name);
        if (pod && strcmp(uid_of(pod), act->uid) == 0)
            sim_delete_pod(s, pod, act->force);
        return true;
    }
    cJSON **at = child_place(s, act);
    assert_true(!*at || strcmp(uid_of(*at), act->uid) == 0);
    cJSON_Delete(*at);
    *at = NULL;
    return true;
}

/* As the API server: a pod's deadline may be set or lowered. */
static void patch_it(struct sim *s, const struct action *act, const cJSON *body)
{
    cJSON *pod = act->child == CHILD_POD ? pod_named(s, act->name) : NULL;
    int64_t had = json_i64(sim_get(pod, "spec"), "activeDeadlineSeconds", INT32_MAX);

    if (act->child == CHILD_DEPLOYMENT && s->deployment)
        yamldoc_merge(s->deployment, body);
    if (!pod || strcmp(uid_of(pod), act->uid) != 0)
        return;
    assert_in_range(json_i64(sim_get(body, "spec"), "activeDeadlineSeconds", 0), 1, had);
    yamldoc_merge(sim_get(pod, "spec"), sim_get(body, "spec"));
}

static bool run_one(struct sim *s, const struct action *act)
{
    struct err err;
    cleanup_json cJSON *body = act->body ? json_parse(act->body, strlen(act->body), &err) : NULL;

    switch (act->kind) {
    case ACTION_STATUS:
        return write_status(s, body);
    case ACTION_EVENT:
        return true;
    case ACTION_DELETE:
        return delete_it(s, act);
    case ACTION_CREATE:
        return create(s, act, body);
    case ACTION_PATCH:
        patch_it(s, act, body);
        return true;
    case ACTION_APPLY:
    case ACTION_EDIT:
        fail_msg("an action on a Workload of a job that is not queued");
    }
    return false;
}

void sim_apply(struct sim *s, const struct sim_pass *p, int n)
{
    for (int i = 0; i < p->plan.n_actions && i < n; i++)
        if (!run_one(s, &p->plan.actions[i]))
            return;
}

const char *sim_print(const struct sim *s, struct arena *a)
{
    return s->job ? json_print(s->job, a) : "(no job)";
}

struct sim_life *sim_life_of(struct sim *s, const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(s->lives); i++) {
        struct sim_life *life = &s->lives[i];
        if (!life->name[0]) {
            snprintf(life->name, sizeof(life->name), "%s", name);
            life->attempt = -1;
        }
        if (strcmp(life->name, name) == 0)
            return life;
    }
    fail_msg("more than %d pod names", SIM_PODS_MAX);
    return NULL;
}

bool sim_repeats(const struct sim *s, const char *type)
{
    const cJSON *r;

    cJSON_ArrayForEach(r, sim_get(sim_get(s->job, "spec"), "replicaSpecs"))
    {
        if (strcmp(json_str(r, "type"), type) == 0)
            return strcmp(json_str(r, "restartPolicy"), "Always") == 0;
    }
    return false;
}
