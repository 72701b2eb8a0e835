/* desired.c - the names of a job's children, their owner, and the headless Service. */
#include "operator/plan/desired.h"

#include "common/contract.h"

char *desired_pod_name(struct arena *a, const char *job, const char *type, int index)
{
    return arena_printf(a, "%s-%s-%d", job, type, index);
}

char *desired_service_name(struct arena *a, const char *job)
{
    return arena_printf(a, "%s-rdzv", job);
}

char *desired_tensorboard_name(struct arena *a, const char *job)
{
    return arena_printf(a, "%s-tensorboard", job);
}

void desired_owner(const struct trainjob *job, cJSON *metadata)
{
    cJSON *refs = cJSON_CreateArray();
    cJSON *ref = cJSON_CreateObject();

    cJSON_AddStringToObject(ref, "apiVersion", TRAINJOB_API_VERSION);
    cJSON_AddStringToObject(ref, "kind", TRAINJOB_KIND);
    cJSON_AddStringToObject(ref, "name", job->name);
    cJSON_AddStringToObject(ref, "uid", job->uid);
    cJSON_AddBoolToObject(ref, "controller", true);
    cJSON_AddBoolToObject(ref, "blockOwnerDeletion", true);
    cJSON_AddItemToArray(refs, ref);
    json_set(metadata, "ownerReferences", refs);
}

cJSON *desired_child(const struct planner *p, const char *version, const char *kind, const char *name,
                     const char *hash)
{
    cJSON *o = cJSON_CreateObject();

    cJSON_AddStringToObject(o, "apiVersion", version);
    cJSON_AddStringToObject(o, "kind", kind);
    cJSON *meta = cJSON_AddObjectToObject(o, "metadata");
    cJSON_AddStringToObject(meta, "name", name);
    cJSON_AddStringToObject(meta, "namespace", p->job->ns);
    cJSON *labels = cJSON_AddObjectToObject(meta, "labels");
    cJSON_AddStringToObject(labels, LABEL_JOB, p->job->name);
    cJSON_AddStringToObject(labels, LABEL_OWNER_NAME, p->job->name);
    if (hash)
        cJSON_AddStringToObject(cJSON_AddObjectToObject(meta, "annotations"), ANNOTATION_SPEC_HASH, hash);
    desired_owner(p->job, meta);
    return o;
}

void desired_port(cJSON *parent, const char *key, const char *name, int number)
{
    cJSON *port = cJSON_CreateObject();

    cJSON_AddStringToObject(port, "name", name);
    cJSON_AddNumberToObject(port, key, number);
    cJSON_AddItemToArray(cJSON_AddArrayToObject(parent, "ports"), port);
}

/* publishNotReadyAddresses: the pods resolve each other's names before any pod is ready. */
cJSON *desired_service(struct planner *p)
{
    cJSON *o = desired_child(p, "v1", "Service", desired_service_name(p->a, p->job->name), NULL);
    cJSON *spec = cJSON_AddObjectToObject(o, "spec");

    cJSON_AddStringToObject(spec, "clusterIP", "None");
    cJSON_AddBoolToObject(spec, "publishNotReadyAddresses", true);
    cJSON *selector = cJSON_AddObjectToObject(spec, "selector");
    cJSON_AddStringToObject(selector, LABEL_JOB, p->job->name);
    desired_port(spec, "port", "rdzv", CONTRACT_RDZV_PORT);
    return o;
}
