/* podbrief.c - a Pod object from its short form in a golden file:
 *
 * {name, uid, type, index, attempt, restart, hash, phase, node, exit, signal, reason, message, finished, waiting,
 * init, podReason,
 *  podMessage, disruption, unschedulable, terminating, grace, created, placed, deadline, beside, also}
 *
 * `beside` names containers that run beside the training.
 */
#include "podbrief.h"

#include "jsontext.h"
#include "operator/api/pod.h"
#include "operator/api/trainjob.h"
#include "yamldoc.h"

#include <stdio.h>
#include <string.h>

void brief_copy(cJSON *to, const char *key, const cJSON *from, const char *from_key)
{
    const cJSON *m = json_child(from, from_key);

    if (m)
        cJSON_AddItemToObject(to, key, cJSON_Duplicate(m, true));
}

void brief_owner(cJSON *meta, const char *uid)
{
    char text[256];

    snprintf(text, sizeof(text),
             "[{'apiVersion':'" TRAINJOB_API_VERSION "','kind':'" TRAINJOB_KIND
             "','uid':'%s','controller':true}]",
             uid);
    cJSON_AddItemToObject(meta, "ownerReferences", jsontext_parse(text));
}

static void pod_labels(cJSON *meta, const cJSON *brief, const char *job, const char *hash)
{
    static const char *const NUMBERS[][2] = {
        {LABEL_INDEX, "index"}, {LABEL_ATTEMPT, "attempt"}, {LABEL_RESTART, "restart"}};
    cJSON *labels = cJSON_AddObjectToObject(meta, "labels");
    const char *type = json_str(brief, "type");
    const char *other = json_str(brief, "hash");
    char text[32];

    cJSON_AddStringToObject(labels, LABEL_JOB, job);
    cJSON_AddStringToObject(labels, LABEL_TYPE, type ? type : "node");
    for (size_t i = 0; i < 3; i++) {
        snprintf(text, sizeof(text), "%lld", (long long)json_i64(brief, NUMBERS[i][1], 0));
        cJSON_AddStringToObject(labels, NUMBERS[i][0], text);
    }
    cJSON_AddStringToObject(labels, LABEL_TEMPLATE_HASH, other ? other : hash);
}

static cJSON *container_status(const cJSON *brief, const char *name)
{
    cJSON *c = cJSON_CreateObject();
    cJSON *state = cJSON_AddObjectToObject(c, "state");

    cJSON_AddStringToObject(c, "name", name);
    if (json_child(brief, "exit")) {
        cJSON *t = cJSON_AddObjectToObject(state, "terminated");
        brief_copy(t, "exitCode", brief, "exit");
        brief_copy(t, "signal", brief, "signal");
        brief_copy(t, "reason", brief, "reason");
        brief_copy(t, "message", brief, "message");
        cJSON_AddStringToObject(t, "finishedAt",
                                json_str(brief, "finished") ? json_str(brief, "finished")
                                                            : "2026-01-01T00:09:58Z");
    } else if (json_child(brief, "waiting")) {
        cJSON *w = cJSON_AddObjectToObject(state, "waiting");
        brief_copy(w, "reason", brief, "waiting");
        brief_copy(w, "message", brief, "message");
    } else {
        cJSON_AddObjectToObject(state, "running");
    }
    return c;
}

static void pod_status(cJSON *pod, const cJSON *brief)
{
    static const struct {
        const char *from, *key, *type, *status, *reason;
    } CONDITIONS[] = {{"disruption", "reason", "DisruptionTarget", "True", NULL},
                      {"unschedulable", "message", "PodScheduled", "False", "Unschedulable"},
                      {"placed", "lastTransitionTime", "PodScheduled", "True", NULL}};
    cJSON *status = cJSON_AddObjectToObject(pod, "status");
    cJSON *conditions = cJSON_AddArrayToObject(status, "conditions");
    const char *phase = json_str(brief, "phase");
    const cJSON *init = json_child(brief, "init");

    cJSON_AddStringToObject(status, "phase", phase ? phase : "Running");
    brief_copy(status, "reason", brief, "podReason");
    brief_copy(status, "message", brief, "podMessage");
    for (size_t i = 0; i < ARRAY_LEN(CONDITIONS); i++) {
        if (!json_child(brief, CONDITIONS[i].from))
            continue;
        cJSON *c = cJSON_CreateObject();
        cJSON_AddStringToObject(c, "type", CONDITIONS[i].type);
        cJSON_AddStringToObject(c, "status", CONDITIONS[i].status);
        if (CONDITIONS[i].reason)
            cJSON_AddStringToObject(c, "reason", CONDITIONS[i].reason);
        brief_copy(c, CONDITIONS[i].key, brief, CONDITIONS[i].from);
        cJSON_AddItemToArray(conditions, c);
    }
    if (init)
        cJSON_AddItemToArray(cJSON_AddArrayToObject(status, "initContainerStatuses"),
                             container_status(init, "prepare"));
    bool started = json_child(brief, "exit") || json_child(brief, "waiting") ||
                   (phase ? strcmp(phase, "Running") == 0 : true);
    if (started)
        cJSON_AddItemToArray(cJSON_AddArrayToObject(status, "containerStatuses"),
                             container_status(brief, "pytorch"));
    const cJSON *name;
    cJSON_ArrayForEach(name, json_child(brief, "beside"))
    {
        cJSON *c = cJSON_CreateObject();
        cJSON_AddStringToObject(c, "name", name->valuestring);
        cJSON_AddObjectToObject(cJSON_AddObjectToObject(c, "state"), "running");
        cJSON_AddItemToArray(cJSON_GetObjectItem(status, "containerStatuses"), c);
    }
}

cJSON *brief_pod(const cJSON *brief, const char *job, const char *uid, const char *hash)
{
    cJSON *pod = cJSON_CreateObject();
    cJSON *meta = cJSON_AddObjectToObject(pod, "metadata");
    char own[160];

    brief_copy(meta, "name", brief, "name");
    cJSON_AddStringToObject(meta, "namespace", "ns");
    snprintf(own, sizeof(own), "uid-%s-%lld", json_str(brief, "name"),
             (long long)json_i64(brief, "attempt", 0));
    cJSON_AddStringToObject(meta, "uid", json_str(brief, "uid") ? json_str(brief, "uid") : own);
    cJSON_AddStringToObject(meta, "resourceVersion", "7");
    brief_copy(meta, "deletionTimestamp", brief, "terminating");
    brief_copy(meta, "deletionGracePeriodSeconds", brief, "grace");
    cJSON_AddStringToObject(meta, "creationTimestamp",
                            json_str(brief, "created") ? json_str(brief, "created") : "2026-01-01T00:00:01Z");
    pod_labels(meta, brief, job, hash);
    brief_owner(meta, uid);
    cJSON *spec = cJSON_AddObjectToObject(pod, "spec");
    brief_copy(spec, "nodeName", brief, "node");
    brief_copy(spec, "activeDeadlineSeconds", brief, "deadline");
    cJSON_AddItemToObject(spec, "containers", jsontext_parse("[{'name':'pytorch'}]"));
    pod_status(pod, brief);
    yamldoc_merge(pod, json_child(brief, "also"));
    return pod;
}
