/* trainjob_spec.c - decode spec.replicaSpecs, and refuse fields that this version does not support. */
#include "operator/api/trainjob.h"

#include "operator/api/quantity.h"

#include <string.h>

static const char *const POLICIES[] = {"Always", "OnFailure", "Never", "ExitCode", NULL};

static int check_quantities(const struct json_at *containers, struct err *err)
{
    for (struct json_at c = {0}; decode_next(containers, &c);)
        if (cJSON_IsObject(c.node) && quantity_check(&c, err) < 0)
            return -1;
    return 0;
}

/* Check the user's template: that it has named containers, and quantities, which the API server would refuse
 * without their path. The API server checks the rest. */
static int check_template(const struct json_at *template, struct err *err)
{
    struct json_at spec = json_member(template, "spec");
    struct json_at containers = json_member(&spec, "containers");
    struct json_at before = json_member(&spec, "initContainers");

    if (!template->node)
        return json_err(template, err, "expected a pod template, got nothing");
    if (json_expect_object(template, err) < 0 || json_expect_object(&spec, err) < 0 ||
        json_expect_array(&containers, 64, err) < 0)
        return -1;
    if (cJSON_GetArraySize(containers.node) < 1)
        return json_err(&containers, err, "expected at least one container");
    for (struct json_at c = {0}; decode_next(&containers, &c);) {
        struct json_at name = json_member(&c, "name");
        if (!cJSON_IsString(name.node) || !name.node->valuestring[0])
            return json_err(&name, err, "expected a name");
    }
    return check_quantities(&containers, err) < 0 || check_quantities(&before, err) < 0 ? -1 : 0;
}

/* Refuse other keys of the template: they are not copied into pods, so the API server would not report them. */
static int check_template_keys(const struct json_at *template, struct err *err)
{
    static const char *const KNOWN[] = {"metadata", "spec", NULL};
    static const char *const OBJECT_META[] = {"name",
                                              "generateName",
                                              "namespace",
                                              "selfLink",
                                              "uid",
                                              "resourceVersion",
                                              "generation",
                                              "creationTimestamp",
                                              "deletionTimestamp",
                                              "deletionGracePeriodSeconds",
                                              "labels",
                                              "annotations",
                                              "ownerReferences",
                                              "finalizers",
                                              "managedFields",
                                              NULL};
    struct json_at metadata = json_member(template, "metadata");

    return decode_members(template, KNOWN, NULL, err) < 0 ? -1
                                                          : decode_members(&metadata, OBJECT_META, NULL, err);
}

static int64_t quantity_whole(const cJSON *q)
{
    double v = quantity_amount(q);

    return v > 0 && v <= 1e9 ? (int64_t)v : 0;
}

/* Whole devices or slices of one, by the names of device plugins. Other resources count a GPU's memory or
 * cores (aliyun.com/gpu-mem, nvidia.com/gpucores), not GPUs. */
static bool counts_gpus(const char *resource)
{
    static const char *const NAMES[] = {"gpu", "gpu.shared", "vgpu", "dcu", NULL};
    static const char *const INTEL[] = {"gpu.intel.com/i915", "gpu.intel.com/xe", NULL};
    const char *slash = strchr(resource, '/');

    return slash && (decode_index(NAMES, slash + 1) >= 0 || decode_index(INTEL, resource) >= 0 ||
                     strncmp(slash + 1, "mig-", 4) == 0);
}

int64_t trainjob_gpus(const cJSON *container, bool *ret_some)
{
    const cJSON *limits = json_find(container, (const char *[]){"resources", "limits", NULL});
    const cJSON *q;
    int64_t n = 0;

    *ret_some = false;
    if (!cJSON_IsObject(limits))
        return 0;
    cJSON_ArrayForEach(q, limits)
    {
        if (counts_gpus(q->string))
            n += quantity_whole(q);
        *ret_some |= quantity_whole(q) > 0 && (counts_gpus(q->string) || strstr(q->string, "gpu"));
    }
    return n;
}

static int64_t template_gpus(const cJSON *template)
{
    bool some;

    return trainjob_gpus(trainjob_training_container(json_child(template, "spec")), &some);
}

static int decode_replica_spec(const struct json_at *at, struct replica_spec *r, struct err *err)
{
    static const char *const KNOWN[] = {"type", "replicas", "restartPolicy", "template", NULL};
    static const char *const REFUSED[] = {"scalingWeight", NULL};
    struct json_at template = json_member(at, "template");
    int policy = RESTART_ON_FAILURE;

    r->replicas = 1;
    if (decode_members(at, KNOWN, REFUSED, err) < 0 || json_get_str(at, "type", &r->type, err) < 0 ||
        json_get_i32(at, "replicas", 1, TRAINJOB_PODS_MAX, &r->replicas, err) < 0 ||
        decode_word(at, "restartPolicy", POLICIES, &policy, err) < 0 || check_template(&template, err) < 0)
        return -1;
    if (!r->type || !decode_is_dns_label(r->type, TRAINJOB_TYPE_MAX, false))
        return json_err(DECODE_AT(at, "type"), err,
                        "expected a DNS label (lower-case letters, digits, '-')%s",
                        r->type ? "" : ", got nothing");
    r->restart_policy = (enum restart_policy)policy;
    r->template = template.node;
    return 0;
}

static int decode_replica_specs(const struct json_at *spec, struct arena *a, struct trainjob_spec *ret,
                                struct err *err)
{
    struct json_at list = json_member(spec, "replicaSpecs");

    if (json_expect_array(&list, TRAINJOB_TYPES_MAX, err) < 0)
        return -1;
    if (cJSON_GetArraySize(list.node) < 1)
        return json_err(&list, err, "expected 1..%d items, got none", TRAINJOB_TYPES_MAX);
    for (struct json_at item = {0}; decode_next(&list, &item);) {
        int n = ret->n_replica_specs;
        struct replica_spec *r = &ret->replica_specs[n];
        if (decode_replica_spec(&item, r, err) < 0)
            return -1;
        struct json_at template = json_member(&item, "template");
        struct err unknown;
        if (check_template_keys(&template, &unknown) < 0) {
            if (!ret->lenient)
                return err_set(err, ERR_INVALID, "%s", unknown.msg);
            if (!ret->unknown)
                ret->unknown = arena_strdup(a, unknown.msg);
        }
        for (int i = 0; i < n; i++)
            if (strcmp(ret->replica_specs[i].type, r->type) == 0)
                return json_err(&item, err, "the type \"%s\" is given twice", r->type);
        ret->n_replica_specs++;
        ret->pods += r->replicas;
        ret->gpus += r->replicas * template_gpus(r->template);
    }
    if (ret->pods > TRAINJOB_PODS_MAX)
        return json_err(&list, err, "expected at most %d pods in all, got %d", TRAINJOB_PODS_MAX, ret->pods);
    return 0;
}

/* With more minNodes than pods torchrun would wait forever. */
static int check_min_nodes(const struct json_at *spec, const struct trainjob_spec *s, struct err *err)
{
    struct json_at torchrun = json_member(spec, "torchrunConfig");

    if (s->torchrun.min_nodes > s->pods)
        return json_err(DECODE_AT(&torchrun, "minNodes"), err,
                        "expected at most the number of pods (%d), got %d", s->pods, s->torchrun.min_nodes);
    return 0;
}

/* PyTorch's torchrun does not detect ranks without progress. */
static int check_progress_timeout(const struct json_at *spec, const struct trainjob_spec *s, struct err *err)
{
    struct json_at policy = json_member(spec, "runPolicy");

    if (s->run_policy.progress_timeout_s.set && s->torchrun.launcher != LAUNCHER_TORCHKEEPER)
        return json_err(
            DECODE_AT(&policy, "progressTimeoutSeconds"), err,
            "needs torchrunConfig.launcher: Torchkeeper: set that, or remove progressTimeoutSeconds");
    return 0;
}

int trainjob_decode_spec(const struct json_at *root, struct arena *a, struct trainjob_spec *ret,
                         struct err *err)
{
    static const char *const KNOWN[] = {"suspend",         "managedBy", "replicaSpecs", "torchrunConfig",
                                        "elastic",         "runPolicy", "runMode",      "scheduler",
                                        "tensorboardSpec", NULL};
    struct json_at spec = json_member(root, "spec");
    bool suspend = false;

    spec.parent = NULL; /* paths begin with "spec" */
    if (!spec.node)
        return json_err(&spec, err, "expected an object, got nothing");
    if (decode_members(&spec, KNOWN, NULL, err) < 0 || json_get_bool(&spec, "suspend", &suspend, err) < 0 ||
        decode_replica_specs(&spec, a, ret, err) < 0 ||
        trainjob_decode_torchrun(&spec, a, &ret->torchrun, err) < 0 ||
        trainjob_check_launcher(&spec, ret, err) < 0 ||
        trainjob_decode_run_policy(&spec, ret, &ret->run_policy, err) < 0 ||
        check_progress_timeout(&spec, ret, err) < 0 || trainjob_decode_elastic(&spec, ret, err) < 0 ||
        check_min_nodes(&spec, ret, err) < 0 || trainjob_decode_run_mode(&spec, a, ret, err) < 0 ||
        trainjob_decode_scheduling(&spec, ret, err) < 0 ||
        trainjob_decode_tensorboard(&spec, a, &ret->tensorboard, err) < 0)
        return -1;
    ret->paused = suspend || ret->resume.enabled;
    return 0;
}
