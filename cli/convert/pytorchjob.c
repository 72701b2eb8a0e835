/* pytorchjob.c - convert a PyTorchJob of kubeflow.org/v1. */
#include "cli/convert/parts.h"

#include "common/sv.h"

#include <string.h>
#include <strings.h>

enum { MASTER, WORKER, N_TYPES };

static const char *const TYPES[N_TYPES] = {"master", "worker"};

/* ---- runPolicy */

/* The operator's --gang-scheduler decides whether they have an effect, as there. */
static void convert_scheduling(struct conversion *c, const struct json_at *policy, cJSON *to)
{
    static const struct losses_field LOST[] = {{"minResources", "the operator computes it"}, {0}};
    const struct json_at from = json_member(policy, "schedulingPolicy");

    convert_members(c, &from, "=minAvailable =queue =priorityClass =scheduleTimeoutSeconds", LOST, to,
                    "schedulingPolicy");
}

static int convert_run_policy(struct conversion *c, struct err *err)
{
    static const char *const CLEAN[] = {"None", "Running", "All", NULL};
    static const char *const CLEAN_UP[] = {"None", "Unfinished", "All"};
    const struct json_at policy = json_member(&c->from, "runPolicy");
    cJSON *to = cJSON_AddObjectToObject(c->spec, "runPolicy");
    int clean = 0;

    if (json_expect_object(&policy, err) < 0 ||
        decode_word(&policy, "cleanPodPolicy", CLEAN, &clean, err) < 0)
        return -1;
    cJSON_AddStringToObject(to, "cleanUpPolicy", CLEAN_UP[clean]);
    convert_members(c, &policy,
                    "cleanPodPolicy =ttlSecondsAfterFinished =activeDeadlineSeconds =backoffLimit suspend "
                    "managedBy schedulingPolicy",
                    NULL, to, NULL);
    convert_scheduling(c, &policy, to);
    return convert_control(c, &policy, "kubeflow.org/training-operator", err);
}

/* ---- pytorchReplicaSpecs */

/* There: every code from 128 on restarts. Here: kills and what is listed. Signals' codes and 255 fit into the list. */
static void retry_as_there(struct conversion *c, const struct json_at *policy)
{
    static const int KNOWN_HERE[] = {130, 137, 138, 140, 143};
    cJSON *run_policy = json_child(c->spec, "runPolicy");

    if (json_child(run_policy, "retryableExitCodes"))
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
static int check_container(struct conversion *c, const struct json_at *at, const cJSON *replica,
                           struct err *err)
{
    const char *name = json_str(convert_container(replica), "name");

    if (name && strcmp(name, "pytorch") == 0)
        return 0;
    return json_err(convert_at(c, at, "template.spec.containers"), err,
                    "expected the training container to be named pytorch, and none before it python; "
                    "got %.60s",
                    name ? name : "none");
}

static int convert_replica(struct conversion *c, const struct json_at *at, const char *type, cJSON *list,
                           int64_t *pods, struct err *err)
{
    const struct json_at template = json_member(at, "template");
    const struct json_at policy = json_member(at, "restartPolicy");
    const char *restart = "OnFailure";
    int64_t replicas = 1;

    losses_members(c->losses, at, "replicas restartPolicy template", NULL);
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
    cJSON_AddItemToObject(r, "template", convert_template(c, &template));
    if (strcmp(restart, "ExitCode") == 0)
        retry_as_there(c, &policy);
    return check_container(c, at, r, err);
}

/* The keys may be written in any case; the master comes first. */
static int convert_replicas(struct conversion *c, int64_t *pods, struct err *err)
{
    const struct json_at specs = json_member(&c->from, "pytorchReplicaSpecs");
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

    if (!sv_i64(sv_from(procs), 2, INT32_MAX, &n))
        return;
    cJSON_ArrayForEach(r, json_child(c->spec, "replicaSpecs"))
    {
        cJSON *container = convert_container(r);
        if (convert_torchrun_at(container) < 0)
            convert_add_variable(container, "WORLD_SIZE",
                                 arena_printf(c->arena, "%lld", (long long)(n * pods)));
    }
}

int convert_pytorchjob(struct conversion *c, struct err *err)
{
    const struct json_at elastic = json_member(&c->from, "elasticPolicy");
    const char *procs = "auto";
    int64_t pods = 0;

    losses_members(c->losses, &c->from, "runPolicy elasticPolicy pytorchReplicaSpecs nprocPerNode", NULL);
    if (convert_run_policy(c, err) < 0 || convert_replicas(c, &pods, err) < 0 ||
        convert_procs(c, &c->from, "nprocPerNode", &procs, err) < 0)
        return -1;
    convert_add_torchrun(c, procs);
    count_processes(c, procs, pods);
    return elastic.node ? convert_elastic(c, &elastic, err) : 0;
}
