/* elastic.c - convert a PyTorchJob's elasticPolicy. */
#include "cli/convert/parts.h"

#include <string.h>

static const struct losses_field FIELDS[] = {
    {"minReplicas", NULL},
    {"maxReplicas", NULL},
    {"maxRestarts", NULL},
    {"nProcPerNode", NULL},
    {"rdzvBackend", NULL},
    {"rdzvHost", NULL},
    {"rdzvPort", NULL},
    {"rdzvConf", NULL},
    {"rdzvId", "the operator makes an id of its own for each attempt"},
    {"standalone", NULL},
    {"metrics", "nothing creates an autoscaler: create a HorizontalPodAutoscaler for the job (it has the "
                "subresource scale)"},
    {0}};

struct range {
    int64_t min, max, expected;
};

/* As Kubeflow fills them in. */
static int read_range(const struct json_at *policy, int64_t replicas, struct range *r, struct err *err)
{
    *r = (struct range){0, 0, replicas};
    if (json_get_i64(policy, "minReplicas", 1, TRAINJOB_PODS_MAX, &r->min, err) < 0 ||
        json_get_i64(policy, "maxReplicas", 1, TRAINJOB_PODS_MAX, &r->max, err) < 0)
        return -1;
    if (!r->max)
        r->max = r->min ? r->min : replicas;
    if (!r->min)
        r->min = r->max;
    return 0;
}

/* rdzvConf: [{key, value}], one option. */
static int convert_rdzv_conf(struct conversion *c, const struct json_at *policy, cJSON *torchrun,
                             struct err *err)
{
    const struct json_at conf = json_member(policy, "rdzvConf");
    const char *text = NULL;
    const cJSON *node;
    int i = 0;

    if (json_expect_array(&conf, 64, err) < 0)
        return -1;
    cJSON_ArrayForEach(node, conf.node)
    {
        const struct json_at item = json_item(&conf, node, i++);
        const char *key = json_str(node, "key");
        const char *value = json_str(node, "value");
        if (!key || !value)
            return json_err(&item, err, "expected key and value");
        text = arena_printf(c->arena, "%s%s%s=%s", text ? text : "--rdzv_conf=", text ? "," : "", key, value);
    }
    if (text)
        convert_add_extra(torchrun, text);
    return 0;
}

/* The operator's own endpoint is pod 0; an etcd server stays where it is. */
static int convert_rendezvous(struct conversion *c, const struct json_at *policy, cJSON *torchrun,
                              struct err *err)
{
    const struct json_at host_at = json_member(policy, "rdzvHost");
    const struct json_at port_at = json_member(policy, "rdzvPort");
    const char *backend = "c10d";
    const char *host = NULL;
    int64_t port = 2379;

    if (json_get_str(policy, "rdzvBackend", &backend, err) < 0 ||
        json_get_str(policy, "rdzvHost", &host, err) < 0 ||
        json_get_i64(policy, "rdzvPort", 1, 65535, &port, err) < 0)
        return -1;
    cJSON_AddStringToObject(torchrun, "rdzvBackend", backend);
    const bool etcd = strncmp(backend, "etcd", 4) == 0;
    if (etcd && host)
        convert_add_extra(torchrun, arena_printf(c->arena, "--rdzv_endpoint=%s:%lld", host, (long long)port));
    else if (host)
        losses_add(c->losses, &host_at, "the pods meet at pod 0");
    if (port_at.node && !(etcd && host))
        losses_add(c->losses, &port_at, "the pods meet at the operator's port");
    return 0;
}

static void set_procs(cJSON *torchrun, int64_t procs, struct arena *a)
{
    if (procs)
        cJSON_ReplaceItemInObjectCaseSensitive(torchrun, "procPerNode",
                                               cJSON_CreateString(arena_printf(a, "%lld", (long long)procs)));
}

/* Not elastic after all: the reason, and torchrun still gets the numbers of restarts and processes by environment, as there. */
static int stay_fixed(struct conversion *c, const struct json_at *policy, const char *reason, struct err *err)
{
    static const char *const MEETING[] = {"rdzvBackend", "rdzvHost", "rdzvPort"};
    const struct json_at conf = json_member(policy, "rdzvConf");
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(c->spec, "replicaSpecs");
    int64_t restarts = -1, procs = 0;
    cJSON *r;

    losses_add(c->losses, policy, "the number of pods stays fixed: %s", reason);
    if (json_get_i64(policy, "maxRestarts", 0, INT32_MAX, &restarts, err) < 0 ||
        json_get_i64(policy, "nProcPerNode", 1, 4096, &procs, err) < 0)
        return -1;
    set_procs(cJSON_GetObjectItemCaseSensitive(c->spec, "torchrunConfig"), procs, c->arena);
    for (size_t i = 0; i < ARRAY_LEN(MEETING); i++) {
        const struct json_at m = json_member(policy, MEETING[i]);
        const bool is_default = cJSON_IsString(m.node) && strcmp(m.node->valuestring, "c10d") == 0;
        if (losses_is_set(m.node) && !is_default)
            losses_add(c->losses, &m, "the pods meet at pod 0");
    }
    if (losses_is_set(conf.node))
        losses_add(c->losses, &conf,
                   "here only an elastic job has it: give torchrun --rdzv_conf in the container's command");
    cJSON_ArrayForEach(r, list)
    {
        cJSON *container = convert_container(r);
        if (restarts >= 0)
            convert_add_variable(container, "PET_MAX_RESTARTS",
                                 arena_printf(c->arena, "%lld", (long long)restarts));
    }
    return 0;
}

/* torchrunConfig from the policy. The options of the command have precedence, as there over the environment. */
static int convert_config(struct conversion *c, const struct json_at *policy, cJSON *torchrun,
                          struct err *err)
{
    int64_t restarts = 0, procs = 0;

    if (json_get_i64(policy, "maxRestarts", 0, INT32_MAX, &restarts, err) < 0 ||
        json_get_i64(policy, "nProcPerNode", 1, 4096, &procs, err) < 0)
        return -1;
    cJSON_ReplaceItemInObjectCaseSensitive(torchrun, "enabled", cJSON_CreateTrue());
    set_procs(torchrun, procs, c->arena);
    cJSON_AddNumberToObject(torchrun, "maxRestarts", (double)restarts);
    return convert_rendezvous(c, policy, torchrun, err) < 0 ? -1
                                                            : convert_rdzv_conf(c, policy, torchrun, err);
}

static void need_restarts(struct conversion *c, const struct json_at *policy, cJSON *torchrun)
{
    const struct json_at at = json_member(policy, "maxRestarts");

    if (json_i64(torchrun, "maxRestarts", 0) >= 1)
        return;
    losses_note(c->losses, &at,
                "1 instead of 0: an elastic job restarts its processes when pods join or leave");
    cJSON_DeleteItemFromObjectCaseSensitive(torchrun, "maxRestarts");
    cJSON_AddNumberToObject(torchrun, "maxRestarts", 1);
}

static void add_elastic(struct conversion *c, const struct json_at *policy, struct range *r)
{
    cJSON *replica = cJSON_GetObjectItemCaseSensitive(c->spec, "replicaSpecs")->child;
    cJSON *elastic = cJSON_AddObjectToObject(c->spec, "elastic");
    const int64_t wanted = r->expected;

    r->expected = wanted < r->min ? r->min : wanted > r->max ? r->max : wanted;
    if (r->expected != wanted)
        losses_add(c->losses, policy,
                   "replicas: %lld instead of %lld, to be within minReplicas and maxReplicas",
                   (long long)r->expected, (long long)wanted);
    cJSON_ReplaceItemInObjectCaseSensitive(replica, "replicas", cJSON_CreateNumber((double)r->expected));
    cJSON_AddBoolToObject(elastic, "enabled", true);
    cJSON_AddNumberToObject(elastic, "minReplicas", (double)r->min);
    cJSON_AddNumberToObject(elastic, "maxReplicas", (double)r->max);
    cJSON_AddNumberToObject(elastic, "expectedReplicas", (double)r->expected);
}

int convert_elastic(struct conversion *c, const struct json_at *policy, struct err *err)
{
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(c->spec, "replicaSpecs");
    cJSON *torchrun = cJSON_GetObjectItemCaseSensitive(c->spec, "torchrunConfig");
    cJSON *first = list ? list->child : NULL;
    cJSON *container = convert_container(first);
    bool standalone = false;
    struct range r;

    losses_members(c->losses, policy, FIELDS);
    if (json_expect_object(policy, err) < 0 || json_get_bool(policy, "standalone", &standalone, err) < 0 ||
        read_range(policy, json_i64(first, "replicas", 1), &r, err) < 0)
        return -1;
    if (cJSON_GetArraySize(list) != 1)
        return stay_fixed(c, policy, "here an elastic job has one type of pods, and no Master", err);
    if (convert_torchrun_at(container) < 0)
        return stay_fixed(
            c, policy, "the container's command is not torchrun, which the operator must start itself", err);
    if (standalone)
        return stay_fixed(c, policy, "standalone: each pod trains for itself", err);
    if (convert_config(c, policy, torchrun, err) < 0)
        return -1;
    convert_torchrun(c, policy, container);
    need_restarts(c, policy, torchrun);
    add_elastic(c, policy, &r);
    return 0;
}
