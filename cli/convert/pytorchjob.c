/* pytorchjob.c - convert a PyTorchJob of kubeflow.org/v1. */
#include "cli/convert/parts.h"

#include "common/sv.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { MASTER, WORKER, N_TYPES };

static const char *const TYPES[N_TYPES] = {"master", "worker"};

/* ---- runPolicy */

/* The operator's --gang-scheduler decides whether they have an effect, as there. */
static void convert_scheduling(struct conversion *c, const struct json_at *policy, cJSON *to)
{
    static const struct losses_field FIELDS[] = {{"minAvailable", LOSSES_SAME},
                                                 {"queue", LOSSES_SAME},
                                                 {"priorityClass", LOSSES_SAME},
                                                 {"scheduleTimeoutSeconds", LOSSES_SAME},
                                                 {"minResources", "the operator computes it"},
                                                 {0}};
    const struct json_at from = json_member(policy, "schedulingPolicy");

    convert_members(c, &from, FIELDS, to, "schedulingPolicy");
}

static int convert_run_policy(struct conversion *c, const struct json_at *spec, struct err *err)
{
    static const struct losses_field FIELDS[] = {{"cleanPodPolicy", NULL},
                                                 {"ttlSecondsAfterFinished", LOSSES_SAME},
                                                 {"activeDeadlineSeconds", LOSSES_SAME},
                                                 {"backoffLimit", LOSSES_SAME},
                                                 {"suspend", NULL},
                                                 {"managedBy", NULL},
                                                 {"schedulingPolicy", NULL},
                                                 {0}};
    static const char *const CLEAN[] = {"None", "Running", "All", NULL};
    static const char *const CLEAN_UP[] = {"None", "Unfinished", "All"};
    const struct json_at policy = json_member(spec, "runPolicy");
    cJSON *to = cJSON_AddObjectToObject(c->spec, "runPolicy");
    int clean = 0;

    if (json_expect_object(&policy, err) < 0 ||
        decode_word(&policy, "cleanPodPolicy", CLEAN, &clean, err) < 0)
        return -1;
    cJSON_AddStringToObject(to, "cleanUpPolicy", CLEAN_UP[clean]);
    convert_members(c, &policy, FIELDS, to, NULL);
    convert_scheduling(c, &policy, to);
    return convert_control(c, &policy, "kubeflow.org/training-operator", err);
}

/* ---- pytorchReplicaSpecs */

/* There: every code from 128 on restarts. Here: kills and what is listed. Signals' codes and 255 fit into the list. */
static void retry_as_there(struct conversion *c, const struct json_at *policy)
{
    static const int KNOWN_HERE[] = {130, 137, 138, 140, 143};
    cJSON *run_policy = cJSON_GetObjectItemCaseSensitive(c->spec, "runPolicy");

    if (cJSON_GetObjectItemCaseSensitive(run_policy, "retryableExitCodes"))
        return;
    cJSON *codes = cJSON_AddArrayToObject(run_policy, "retryableExitCodes");
    for (int code = 128; code < 160; code++) {
        bool known = false;
        for (size_t i = 0; i < ARRAY_LEN(KNOWN_HERE); i++)
            known |= code == KNOWN_HERE[i];
        if (!known)
            cJSON_AddItemToArray(codes, cJSON_CreateNumber(code));
    }
    cJSON_AddItemToArray(codes, cJSON_CreateNumber(255));
    losses_add(
        c->losses, policy,
        "ExitCode: exit codes 160..254 led to a restart, and are permanent failures here: list those that "
        "you use in runPolicy.retryableExitCodes, of at most 32");
}

/* Kubeflow takes the container "pytorch", this operator "python" or "pytorch", whichever comes first. */
static int check_container(const struct json_at *at, const cJSON *pod_spec, struct err *err)
{
    const char *name = json_str(trainjob_training_container(pod_spec), "name");
    const struct json_at template = json_member(at, "template");
    const struct json_at spec = json_member(&template, "spec");
    const struct json_at containers = json_member(&spec, "containers");

    if (name && strcmp(name, "pytorch") == 0)
        return 0;
    return json_err(&containers, err,
                    "expected the training container to be named pytorch, and none before it python; "
                    "got %.60s",
                    name ? name : "none");
}

static int convert_replica(struct conversion *c, const struct json_at *at, const char *type, cJSON *list,
                           int64_t *pods, struct err *err)
{
    static const struct losses_field FIELDS[] = {
        {"replicas", NULL}, {"restartPolicy", NULL}, {"template", NULL}, {0}};
    const struct json_at template = json_member(at, "template");
    const struct json_at policy = json_member(at, "restartPolicy");
    const char *restart = "OnFailure";
    int64_t replicas = 1;

    losses_members(c->losses, at, FIELDS);
    if (json_expect_object(at, err) < 0 ||
        json_get_i64(at, "replicas", 0, TRAINJOB_PODS_MAX, &replicas, err) < 0 ||
        json_get_str(at, "restartPolicy", &restart, err) < 0)
        return -1;
    if (replicas == 0)
        return 0;
    *pods += replicas;
    cJSON *r = cJSON_CreateObject();
    cJSON_AddItemToArray(list, r);
    cJSON_AddStringToObject(r, "type", type);
    cJSON_AddNumberToObject(r, "replicas", (double)replicas);
    cJSON_AddStringToObject(r, "restartPolicy", restart[0] ? restart : "OnFailure");
    cJSON *ours = convert_template(c, &template);
    cJSON_AddItemToObject(r, "template", ours);
    if (strcmp(restart, "ExitCode") == 0)
        retry_as_there(c, &policy);
    return check_container(at, cJSON_GetObjectItemCaseSensitive(ours, "spec"), err);
}

/* The keys may be written in any case; the master comes first. */
static int convert_replicas(struct conversion *c, const struct json_at *spec, int64_t *pods, struct err *err)
{
    const struct json_at specs = json_member(spec, "pytorchReplicaSpecs");
    cJSON *list = cJSON_AddArrayToObject(c->spec, "replicaSpecs");
    const cJSON *m;

    if (!specs.node || json_expect_object(&specs, err) < 0)
        return specs.node ? -1 : json_err(&specs, err, "expected an object, got nothing");
    cJSON_ArrayForEach(m, specs.node)
    {
        const struct json_at at = json_member(&specs, m->string);
        if (strcasecmp(m->string, TYPES[MASTER]) != 0 && strcasecmp(m->string, TYPES[WORKER]) != 0)
            return json_err(&at, err, "expected Master or Worker");
    }
    for (int i = 0; i < N_TYPES; i++)
        cJSON_ArrayForEach(m, specs.node)
        {
            const struct json_at at = json_member(&specs, m->string);
            if (strcasecmp(m->string, TYPES[i]) == 0 && at.node &&
                convert_replica(c, &at, TYPES[i], list, pods, err) < 0)
                return -1;
        }
    return 0;
}

/* ---- the number of processes */

/* There WORLD_SIZE counts processes, here pods; torchrun sets its own. */
static void count_processes(struct conversion *c, const char *procs, int64_t pods)
{
    cJSON *r;
    int64_t n;
    char text[32];

    if (!sv_i64(sv_from(procs), 2, INT32_MAX, &n))
        return;
    snprintf(text, sizeof(text), "%lld", (long long)(n * pods));
    cJSON_ArrayForEach(r, cJSON_GetObjectItemCaseSensitive(c->spec, "replicaSpecs"))
    {
        cJSON *container = convert_container(r);
        if (convert_torchrun_at(container) < 0)
            convert_add_variable(container, "WORLD_SIZE", text);
    }
}

/* A number is accepted too: people leave out the quotes. */
static int convert_procs(struct conversion *c, const struct json_at *spec, int64_t pods, struct err *err)
{
    const struct json_at procs = json_member(spec, "nprocPerNode");
    cJSON *torchrun = cJSON_AddObjectToObject(c->spec, "torchrunConfig");
    const char *text = "auto";
    int64_t n = 0;

    cJSON_AddBoolToObject(torchrun, "enabled", false);
    if (cJSON_IsNumber(procs.node)) {
        if (json_get_i64(spec, "nprocPerNode", 1, 4096, &n, err) < 0)
            return -1;
        text = arena_printf(c->arena, "%lld", (long long)n);
    } else if (json_get_str(spec, "nprocPerNode", &text, err) < 0) {
        return -1;
    }
    cJSON_AddStringToObject(torchrun, "procPerNode", text);
    count_processes(c, text, pods);
    return 0;
}

int convert_pytorchjob(struct conversion *c, struct err *err)
{
    static const struct losses_field FIELDS[] = {{"runPolicy", NULL},
                                                 {"elasticPolicy", NULL},
                                                 {"pytorchReplicaSpecs", NULL},
                                                 {"nprocPerNode", NULL},
                                                 {0}};
    const struct json_at spec = convert_top(c->root, "spec");
    const struct json_at elastic = json_member(&spec, "elasticPolicy");
    int64_t pods = 0;

    losses_members(c->losses, &spec, FIELDS);
    if (convert_run_policy(c, &spec, err) < 0 || convert_replicas(c, &spec, &pods, err) < 0 ||
        convert_procs(c, &spec, pods, err) < 0)
        return -1;
    return elastic.node ? convert_elastic(c, &elastic, err) : 0;
}
