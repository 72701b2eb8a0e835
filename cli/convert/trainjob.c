/* trainjob.c - convert a TrainJob of trainer.kubeflow.org/v1alpha1 and its runtime with an mlPolicy of torch. */
#include "cli/convert/parts.h"

#include "common/sv.h"

#include <string.h>

/* ---- spec.trainer over the runtime's container "node" */

static cJSON *node_container(const cJSON *pod_spec)
{
    return json_item_with(json_child(pod_spec, "containers"), "name", "node");
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
    const struct json_at command = json_member(trainer, "command");
    const struct json_at env = json_member(trainer, "env");

    if (json_expect_object(trainer, err) < 0 || json_expect_array(&command, 128, err) < 0 ||
        json_expect_array(&env, 128, err) < 0)
        return -1;
    if (is_torchtune(command.node))
        return json_err(
            &command, err,
            "Trainer makes torchtune's recipe and arguments: write out the command that it would run");
    convert_members(c, trainer, "=image =command =args env numNodes resourcesPerNode numProcPerNode", NULL,
                    container, NULL);
    convert_copy(container, "resources", json_child(trainer->node, "resourcesPerNode"));
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
    const cJSON *resources = json_child(container, "resources");
    const cJSON *limits = json_child(resources, "limits"), *requests = json_child(resources, "requests");
    int64_t cpus = cpus_of(json_child(requests, "cpu"));

    if (has_gpus(limits) || has_gpus(requests))
        return "auto";
    cpus = cpus ? cpus : cpus_of(json_child(limits, "cpu"));
    return arena_printf(c->arena, "%lld", (long long)(cpus ? cpus : 1));
}

static int convert_numbers(struct conversion *c, const struct json_at *trainer, const struct runtime *rt,
                           cJSON *replica, const cJSON *container, struct err *err)
{
    const char *procs = "auto";
    int64_t nodes = rt->nodes;

    if (json_get_i64(trainer, "numNodes", 0, TRAINJOB_PODS_MAX, &nodes, err) < 0 ||
        convert_procs(c, rt->torch, "numProcPerNode", &procs, err) < 0 ||
        convert_procs(c, trainer, "numProcPerNode", &procs, err) < 0)
        return -1;
    convert_add_torchrun(c, strcmp(procs, "auto") == 0 ? automatic_procs(c, container) : procs);
    cJSON_ReplaceItemInObjectCaseSensitive(replica, "replicas", cJSON_CreateNumber((double)nodes));
    return 0;
}

/* ---- the whole */

/* The operator takes the first container, unless one is named python or pytorch. */
static int put_first(const struct json_at *ref, cJSON *pod_spec, cJSON *container, struct err *err)
{
    cJSON *list = json_child(pod_spec, "containers");

    cJSON_InsertItemInArray(list, 0, cJSON_DetachItemViaPointer(list, container));
    if (trainjob_training_container(pod_spec) != container)
        return json_err(
            ref, err, "the operator would take its container \"%.60s\" for the training container: rename it",
            json_str(trainjob_training_container(pod_spec), "name"));
    return 0;
}

static cJSON *add_replica(struct conversion *c, const struct runtime *rt)
{
    cJSON *list = cJSON_AddArrayToObject(c->spec, "replicaSpecs");
    cJSON *r = cJSON_CreateObject();

    cJSON_AddItemToArray(list, r);
    cJSON_AddStringToObject(r, "type", rt->step);
    cJSON_AddNumberToObject(r, "replicas", 1);
    cJSON_AddItemToObject(r, "template", convert_template(c, rt->pod_template));
    return r;
}

int convert_trainjob(struct conversion *c, struct err *err)
{
    static const struct losses_field LOST[] = {
        {"initializer", "nothing fetches data or a model before training: do it in an init container, or in "
                        "a Job before this one"},
        {0}};
    const struct json_at *spec = &c->from;
    const struct json_at ref = json_member(spec, "runtimeRef");
    const struct json_at trainer = json_member(spec, "trainer");
    const cJSON *deadline = json_child(spec->node, "activeDeadlineSeconds");
    struct runtime rt;

    losses_members(c->losses, spec,
                   "runtimeRef trainer runtimePatches podTemplateOverrides suspend managedBy "
                   "activeDeadlineSeconds labels annotations",
                   LOST);
    convert_labels(spec, c->metadata); /* Trainer before 2.2: of the JobSet, which is the job here */
    if (runtime_read(c, &ref, &rt, err) < 0)
        return -1;
    cJSON *replica = add_replica(c, &rt);
    cJSON *template = json_child(replica, "template");
    runtime_claims(c, &rt, json_child(template, "spec"));
    runtime_end(c, &rt);
    cJSON *container = node_container(json_child(template, "spec"));
    if (!container)
        return json_err(&ref, err, "expected a runtime whose step \"trainer\" has a container named node");
    if (deadline)
        convert_copy(convert_object(c->spec, "runPolicy"), "activeDeadlineSeconds", deadline);
    if (convert_control(c, spec, "trainer.kubeflow.org/trainjob-controller", err) < 0 ||
        apply_trainer(c, &trainer, container, err) < 0 ||
        convert_numbers(c, &trainer, &rt, replica, container, err) < 0 ||
        convert_patches(c, spec, &rt, template, err) < 0)
        return -1;
    /* A patch may have replaced the list by something else. */
    container = node_container(json_child(template, "spec"));
    if (!container)
        return json_err(spec, err, "expected patches that leave the container named node");
    return put_first(&ref, json_child(template, "spec"), container, err);
}
