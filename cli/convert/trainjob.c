/* trainjob.c - convert a TrainJob of trainer.kubeflow.org/v1alpha1 and its runtime with an mlPolicy of torch. */
#include "cli/convert/runtime_parts.h"

#include "common/sv.h"

#include <string.h>

/* ---- spec.trainer over the runtime's container "node" */

static cJSON *node_container(const cJSON *pod_spec)
{
    return json_item_with(cJSON_GetObjectItemCaseSensitive(pod_spec, "containers"), "name", "node");
}

/* torchtune's recipe and arguments are written by Trainer itself. */
static bool is_torchtune(const cJSON *command)
{
    const cJSON *second = command && command->child ? command->child->next : NULL;

    return second && !second->next && cJSON_IsString(command->child) && cJSON_IsString(second) &&
           strcmp(command->child->valuestring, "tune") == 0 && strcmp(second->valuestring, "run") == 0;
}

static int apply_trainer(struct conversion *c, const struct json_at *trainer, cJSON *container,
                         struct err *err)
{
    static const struct losses_field FIELDS[] = {
        {"image", LOSSES_SAME}, {"command", LOSSES_SAME},   {"args", LOSSES_SAME},    {"env", NULL},
        {"numNodes", NULL},     {"resourcesPerNode", NULL}, {"numProcPerNode", NULL}, {0}};
    const struct json_at command = json_member(trainer, "command");
    const struct json_at env = json_member(trainer, "env");
    const struct json_at resources = json_member(trainer, "resourcesPerNode");

    if (json_expect_object(trainer, err) < 0 || json_expect_array(&command, 128, err) < 0 ||
        json_expect_array(&env, 128, err) < 0)
        return -1;
    if (is_torchtune(command.node))
        return json_err(
            &command, err,
            "Trainer makes torchtune's recipe and arguments: write out the command that it would run");
    convert_members(c, trainer, FIELDS, container, NULL);
    convert_copy(container, "resources", &resources);
    if (losses_is_set(env.node)) {
        cleanup_json cJSON *patch = cJSON_CreateObject();
        cJSON_AddItemToObject(patch, "env", cJSON_Duplicate(env.node, true));
        convert_merge(container, patch);
    }
    return 0;
}

/* ---- the numbers of nodes and processes */

/* Whole CPUs, rounded up; 0: not set. */
static int64_t cpus_of(const cJSON *q)
{
    double v = 0;
    struct sv text = cJSON_IsString(q) ? sv_from(q->valuestring) : sv_from("");

    if (cJSON_IsNumber(q))
        v = q->valuedouble;
    else if (sv_ends(text, "m") && sv_f64((struct sv){text.p, text.len - 1}, &v))
        v /= 1000;
    else if (!sv_f64(text, &v))
        v = 0;
    if (!(v > 0) || v > 4096)
        return 0;
    return (int64_t)v + ((double)(int64_t)v < v);
}

/* As Trainer counts: whatever has "gpu" in its name. */
static bool has_gpus(const cJSON *limits)
{
    const cJSON *q;

    cJSON_ArrayForEach(q, limits) if (q->string && strstr(q->string, "gpu")) return true;
    return false;
}

/* "auto" means the GPUs, or where there are none the CPUs that the container may use. */
static const char *automatic_procs(struct conversion *c, const cJSON *container)
{
    const cJSON *limits = json_find(container, (const char *[]){"resources", "limits", NULL});
    const cJSON *requests = json_find(container, (const char *[]){"resources", "requests", NULL});
    int64_t cpus = cpus_of(cJSON_GetObjectItemCaseSensitive(requests, "cpu"));

    if (has_gpus(limits) || has_gpus(requests))
        return "auto";
    cpus = cpus ? cpus : cpus_of(cJSON_GetObjectItemCaseSensitive(limits, "cpu"));
    return arena_printf(c->arena, "%lld", (long long)(cpus ? cpus : 1));
}

/* A number, or in earlier versions a word; *ret is unchanged where it is not set. */
static int read_procs(struct conversion *c, const struct json_at *at, const char **ret, struct err *err)
{
    const struct json_at m = json_member(at, "numProcPerNode");
    int64_t n = 0;

    if (cJSON_IsString(m.node)) {
        *ret = m.node->valuestring;
        return 0;
    }
    if (json_get_i64(at, "numProcPerNode", 1, 4096, &n, err) < 0)
        return -1;
    *ret = n ? arena_printf(c->arena, "%lld", (long long)n) : *ret;
    return 0;
}

static int convert_numbers(struct conversion *c, const struct json_at *trainer,
                           const struct runtime_parts *rt, cJSON *replica, const cJSON *container,
                           struct err *err)
{
    const char *procs = "auto";
    int64_t nodes = rt->nodes;
    cJSON *torchrun = cJSON_AddObjectToObject(c->spec, "torchrunConfig");

    if (json_get_i64(trainer, "numNodes", 0, TRAINJOB_PODS_MAX, &nodes, err) < 0 ||
        read_procs(c, &rt->torch, &procs, err) < 0 || read_procs(c, trainer, &procs, err) < 0)
        return -1;
    if (strcmp(procs, "auto") == 0)
        procs = automatic_procs(c, container);
    cJSON_AddBoolToObject(torchrun, "enabled", false);
    cJSON_AddStringToObject(torchrun, "procPerNode", procs);
    cJSON_ReplaceItemInObjectCaseSensitive(replica, "replicas", cJSON_CreateNumber((double)nodes));
    return 0;
}

/* ---- the whole */

static int convert_policies(struct conversion *c, const struct json_at *spec, struct err *err)
{
    const struct json_at deadline = json_member(spec, "activeDeadlineSeconds");

    if (deadline.node)
        convert_copy(convert_object(c->spec, "runPolicy"), "activeDeadlineSeconds", &deadline);
    return convert_control(c, spec, "trainer.kubeflow.org/trainjob-controller", err);
}

/* The operator takes the first container, unless one is named python or pytorch. */
static int put_first(const struct json_at *ref, cJSON *pod_spec, cJSON *container, struct err *err)
{
    cJSON *list = cJSON_GetObjectItemCaseSensitive(pod_spec, "containers");

    cJSON_InsertItemInArray(list, 0, cJSON_DetachItemViaPointer(list, container));
    if (trainjob_training_container(pod_spec) != container)
        return json_err(
            ref, err, "the operator would take its container \"%.60s\" for the training container: rename it",
            json_str(trainjob_training_container(pod_spec), "name"));
    return 0;
}

static cJSON *add_replica(struct conversion *c, const struct runtime_parts *rt)
{
    cJSON *list = cJSON_AddArrayToObject(c->spec, "replicaSpecs");
    cJSON *r = cJSON_CreateObject();

    cJSON_AddItemToArray(list, r);
    cJSON_AddStringToObject(r, "type", rt->step);
    cJSON_AddNumberToObject(r, "replicas", 1);
    cJSON_AddItemToObject(r, "template", convert_template(c, &rt->pod_template));
    return r;
}

int convert_trainjob(struct conversion *c, struct err *err)
{
    static const struct losses_field FIELDS[] = {
        {"runtimeRef", NULL},
        {"trainer", NULL},
        {"runtimePatches", NULL},
        {"podTemplateOverrides", NULL},
        {"suspend", NULL},
        {"managedBy", NULL},
        {"activeDeadlineSeconds", NULL},
        {"labels", NULL},
        {"annotations", NULL},
        {"initializer", "nothing fetches data or a model before training: do it in an init container, or in "
                        "a Job before this one"},
        {0}};
    const struct json_at spec = convert_top(c->root, "spec");
    const struct json_at ref = json_member(&spec, "runtimeRef");
    const struct json_at trainer = json_member(&spec, "trainer");
    struct runtime_parts rt;

    losses_members(c->losses, &spec, FIELDS);
    convert_labels(&spec, c->metadata); /* Trainer before 2.2: of the JobSet, which is the job here */
    const cJSON *runtime = convert_find_runtime(c, &ref, err);
    if (!runtime || runtime_read(c, runtime, &rt, err) < 0)
        return -1;
    cJSON *replica = add_replica(c, &rt);
    cJSON *template = cJSON_GetObjectItemCaseSensitive(replica, "template");
    runtime_claims(c, &rt, cJSON_GetObjectItemCaseSensitive(template, "spec"));
    runtime_end(c, &rt);
    cJSON *container = node_container(cJSON_GetObjectItemCaseSensitive(template, "spec"));
    if (!container)
        return json_err(&ref, err, "expected a runtime whose step \"trainer\" has a container named node");
    if (convert_policies(c, &spec, err) < 0 || apply_trainer(c, &trainer, container, err) < 0 ||
        convert_numbers(c, &trainer, &rt, replica, container, err) < 0 ||
        convert_patches(c, &spec, &rt, template, err) < 0)
        return -1;
    /* A patch may have replaced the list by something else. */
    container = node_container(cJSON_GetObjectItemCaseSensitive(template, "spec"));
    if (!container)
        return json_err(&spec, err, "expected patches that leave the container named node");
    return put_first(&ref, cJSON_GetObjectItemCaseSensitive(template, "spec"), container, err);
}
