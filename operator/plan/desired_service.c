/* desired_service.c - one per job; names resolve before pods are ready, since rendezvous comes before
 * readiness. */
#include "operator/plan/desired_service.h"

#include "common/contract.h"
#include "operator/plan/desired_pod.h"
#include "operator/plan/naming.h"

cJSON *desired_service(struct planner *p)
{
    cJSON *o = cJSON_CreateObject();
    cJSON *port = cJSON_CreateObject();

    cJSON_AddStringToObject(o, "apiVersion", "v1");
    cJSON_AddStringToObject(o, "kind", "Service");
    cJSON *meta = cJSON_AddObjectToObject(o, "metadata");
    cJSON_AddStringToObject(meta, "name", naming_service(p->a, p->job->name));
    cJSON_AddStringToObject(meta, "namespace", p->job->ns);
    cJSON *labels = cJSON_AddObjectToObject(meta, "labels");
    cJSON_AddStringToObject(labels, LABEL_JOB, p->job->name);
    cJSON_AddStringToObject(labels, LABEL_OWNER_NAME, p->job->name);
    desired_owner(p->job, meta);
    cJSON *spec = cJSON_AddObjectToObject(o, "spec");
    cJSON_AddStringToObject(spec, "clusterIP", "None");
    cJSON_AddBoolToObject(spec, "publishNotReadyAddresses", true);
    cJSON *selector = cJSON_AddObjectToObject(spec, "selector");
    cJSON_AddStringToObject(selector, LABEL_JOB, p->job->name);
    cJSON_AddStringToObject(port, "name", "rdzv");
    cJSON_AddNumberToObject(port, "port", CONTRACT_RDZV_PORT);
    cJSON_AddItemToArray(cJSON_AddArrayToObject(spec, "ports"), port);
    return o;
}
