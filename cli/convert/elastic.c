/* elastic.c - convert a PyTorchJob's elasticPolicy. */
#include "cli/convert/parts.h"

#include <string.h>

struct policy {
    const struct json_at *at;
    int64_t min, max, expected;
    int64_t restarts; /* -1: not set */
};

/* minReplicas and maxReplicas as Kubeflow fills them in. The number of processes goes into torchrunConfig. */
static int read_policy(struct conversion *c, const struct json_at *at, int64_t replicas, struct policy *p,
                       struct err *err)
{
    int64_t procs = 0;

    *p = (struct policy){at, 0, 0, replicas, -1};
    if (json_get_i64(at, "minReplicas", 1, TRAINJOB_PODS_MAX, &p->min, err) < 0 ||
        json_get_i64(at, "maxReplicas", 1, TRAINJOB_PODS_MAX, &p->max, err) < 0 ||
        json_get_i64(at, "maxRestarts", 0, INT32_MAX, &p->restarts, err) < 0 ||
        json_get_i64(at, "nProcPerNode", 1, 4096, &procs, err) < 0)
        return -1;
    if (!p->max)
        p->max = p->min ? p->min : replicas;
    if (!p->min)
        p->min = p->max;
    if (procs)
        json_set(json_child(c->spec, "torchrunConfig"), "procPerNode",
                 cJSON_CreateString(arena_printf(c->arena, "%lld", (long long)procs)));
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

/* Not elastic after all: the reason, and torchrun still gets the number of restarts by environment, as there. */
static int stay_fixed(struct conversion *c, const struct policy *p, const char *reason)
{
    static const char *const MEETING[] = {"rdzvBackend", "rdzvHost", "rdzvPort"};
    const struct json_at conf = json_member(p->at, "rdzvConf");
    cJSON *r;

    losses_add(c->losses, p->at, "the number of pods stays fixed: %s", reason);
    for (size_t i = 0; i < ARRAY_LEN(MEETING); i++) {
        const struct json_at m = json_member(p->at, MEETING[i]);
        const bool is_default = cJSON_IsString(m.node) && strcmp(m.node->valuestring, "c10d") == 0;
        if (losses_is_set(m.node) && !is_default)
            losses_add(c->losses, &m, "the pods meet at pod 0");
    }
    if (losses_is_set(conf.node))
        losses_add(c->losses, &conf,
                   "here only an elastic job has it: give torchrun --rdzv_conf in the container's command");
    cJSON_ArrayForEach(r, json_child(c->spec, "replicaSpecs"))
    {
        if (p->restarts >= 0)
            convert_add_variable(convert_container(r), "PET_MAX_RESTARTS",
                                 arena_printf(c->arena, "%lld", (long long)p->restarts));
    }
    return 0;
}

/* torchrunConfig from the policy. The options of the command have precedence, as there over the environment. */
static int convert_config(struct conversion *c, const struct policy *p, cJSON *torchrun, struct err *err)
{
    cJSON_ReplaceItemInObjectCaseSensitive(torchrun, "enabled", cJSON_CreateTrue());
    cJSON_AddNumberToObject(torchrun, "maxRestarts", p->restarts < 0 ? 0 : (double)p->restarts);
    return convert_rendezvous(c, p->at, torchrun, err) < 0 ? -1 : convert_rdzv_conf(c, p->at, torchrun, err);
}

static void need_restarts(struct conversion *c, const struct json_at *policy, cJSON *torchrun)
{
    const struct json_at at = json_member(policy, "maxRestarts");

    if (json_i64(torchrun, "maxRestarts", 0) >= 1)
        return;
    losses_note(c->losses, &at,
                "1 instead of 0: an elastic job restarts its processes when pods join or leave");
    json_set(torchrun, "maxRestarts", cJSON_CreateNumber(1));
}

static void add_elastic(struct conversion *c, const struct policy *p)
{
    cJSON *elastic = cJSON_AddObjectToObject(c->spec, "elastic");
    const int64_t n = p->expected < p->min ? p->min : p->expected > p->max ? p->max : p->expected;

    if (n != p->expected)
        losses_add(c->losses, p->at,
                   "replicas: %lld instead of %lld, to be within minReplicas and maxReplicas", (long long)n,
                   (long long)p->expected);
    cJSON_ReplaceItemInObjectCaseSensitive(json_child(c->spec, "replicaSpecs")->child, "replicas",
                                           cJSON_CreateNumber((double)n));
    cJSON_AddBoolToObject(elastic, "enabled", true);
    cJSON_AddNumberToObject(elastic, "minReplicas", (double)p->min);
    cJSON_AddNumberToObject(elastic, "maxReplicas", (double)p->max);
    cJSON_AddNumberToObject(elastic, "expectedReplicas", (double)n);
}

int convert_elastic(struct conversion *c, const struct json_at *policy, struct err *err)
{
    static const struct losses_field LOST[] = {
        {"rdzvId", "the operator makes an id of its own for each attempt"},
        {"metrics", "nothing creates an autoscaler: create a HorizontalPodAutoscaler for the job (it has the "
                    "subresource scale)"},
        {0}};
    const cJSON *list = json_child(c->spec, "replicaSpecs");
    cJSON *torchrun = json_child(c->spec, "torchrunConfig");
    const cJSON *first = list->child;
    cJSON *container = convert_container(first);
    bool standalone = false;
    struct policy p;

    losses_members(c->losses, policy,
                   "minReplicas maxReplicas maxRestarts nProcPerNode rdzvBackend rdzvHost rdzvPort rdzvConf "
                   "standalone",
                   LOST);
    if (json_expect_object(policy, err) < 0 || json_get_bool(policy, "standalone", &standalone, err) < 0 ||
        read_policy(c, policy, json_i64(first, "replicas", 1), &p, err) < 0)
        return -1;
    if (cJSON_GetArraySize(list) != 1)
        return stay_fixed(c, &p, "here an elastic job has one type of pods, and no Master");
    if (convert_torchrun_at(container) < 0)
        return stay_fixed(c, &p,
                          "the container's command is not torchrun, which the operator must start itself");
    if (standalone)
        return stay_fixed(c, &p, "standalone: each pod trains for itself");
    if (convert_config(c, &p, torchrun, err) < 0)
        return -1;
    convert_torchrun(c, policy, container);
    need_restarts(c, policy, torchrun);
    add_elastic(c, &p);
    return 0;
}
