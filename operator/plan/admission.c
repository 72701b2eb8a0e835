/* admission.c - set in a pod what its Workload's admission says. */
#include "operator/plan/admission.h"

#include "operator/plan/desired.h"
#include "operator/plan/queuespec.h"

#include <string.h>

#define LABEL_PODSET WORKLOAD_GROUP "/podset"
#define LABEL_LOCAL_QUEUE WORKLOAD_GROUP "/local-queue-name"
#define LABEL_CLUSTER_QUEUE WORKLOAD_GROUP "/cluster-queue-name"
#define ANNOTATION_WORKLOAD WORKLOAD_GROUP "/workload"
#define TOPOLOGY_GATE WORKLOAD_GROUP "/topology"

enum { LABEL_VALUE_MAX = 63 };

static cJSON *at(const cJSON *node, const char *key)
{
    return cJSON_GetObjectItemCaseSensitive(node, key);
}

/* Add what `from` has and `to` lacks. Returns a key that both have with different values; NULL: none. */
static const char *merge(cJSON *to, const cJSON *from)
{
    const char *conflict = NULL;
    const cJSON *m;

    cJSON_ArrayForEach(m, from)
    {
        const char *have = m->string ? json_str(to, m->string) : NULL;
        if (!cJSON_IsString(m) || !m->string)
            continue;
        if (!have)
            desired_set(to, m->string, cJSON_CreateString(m->valuestring));
        else if (strcmp(have, m->valuestring) != 0)
            conflict = m->string;
    }
    return conflict;
}

static void add_tolerations(cJSON *to, const cJSON *from)
{
    const cJSON *t, *have;

    cJSON_ArrayForEach(t, from)
    {
        bool known = false;
        cJSON_ArrayForEach(have, to) known = known || cJSON_Compare(have, t, true);
        if (!known)
            cJSON_AddItemToArray(to, cJSON_Duplicate(t, true));
    }
}

static cJSON *array_of(cJSON *parent, const char *key)
{
    cJSON *o = at(parent, key);

    if (cJSON_IsArray(o))
        return o;
    o = cJSON_CreateArray();
    desired_set(parent, key, o);
    return o;
}

/* Set what the assignment says in a pod, or in a pod template. Returns a key that it would overwrite; NULL: none. */
const char *admission_assign(const struct planner *p, const cJSON *assignment, cJSON *pod)
{
    cJSON *meta = desired_object(pod, "metadata"), *spec = desired_object(pod, "spec");
    const char *conflict = NULL, *c;
    const cJSON *f, *u;
    struct err ignored;

    cJSON_ArrayForEach(f, at(assignment, "flavors"))
    {
        const char *name = cJSON_IsString(f) ? f->valuestring : "";
        const struct queue_setting *s = queuespec_setting(p, QUEUE_FLAVOR, name);
        cleanup_json cJSON *labels = s ? json_parse(s->node_labels, strlen(s->node_labels), &ignored) : NULL;
        cleanup_json cJSON *tolerations =
            s ? json_parse(s->tolerations, strlen(s->tolerations), &ignored) : NULL;
        c = merge(desired_object(spec, "nodeSelector"), labels);
        conflict = c ? arena_strdup(p->a, c) : conflict;
        add_tolerations(array_of(spec, "tolerations"), tolerations);
    }
    cJSON_ArrayForEach(u, at(assignment, "updates"))
    {
        c = merge(desired_object(spec, "nodeSelector"), at(u, "nodeSelector"));
        c = c ? c : merge(desired_object(meta, "labels"), at(u, "labels"));
        c = c ? c : merge(desired_object(meta, "annotations"), at(u, "annotations"));
        conflict = c ? arena_strdup(p->a, c) : conflict;
        add_tolerations(array_of(spec, "tolerations"), at(u, "tolerations"));
    }
    return conflict;
}

void admission_fill_pod(const struct planner *p, const struct slot *s, cJSON *pod)
{
    const struct workload *w = p->queue.workload;
    const cJSON *assignment = cJSON_GetArrayItem(p->queue.assignments, s->type);
    cJSON *meta = at(pod, "metadata");

    if (p->queue.verdict != QUEUE_RUN)
        return;
    (void)admission_assign(p, assignment, pod);
    cJSON *labels = desired_object(meta, "labels"), *annotations = desired_object(meta, "annotations");
    cJSON_DeleteItemFromObjectCaseSensitive(labels, LABEL_QUEUE);
    desired_set(labels, LABEL_PODSET, cJSON_CreateString(s->spec->type));
    if (strlen(w->queue) <= LABEL_VALUE_MAX)
        desired_set(labels, LABEL_LOCAL_QUEUE, cJSON_CreateString(w->queue));
    if (w->cluster_queue[0] && strlen(w->cluster_queue) <= LABEL_VALUE_MAX)
        desired_set(labels, LABEL_CLUSTER_QUEUE, cJSON_CreateString(w->cluster_queue));
    desired_set(annotations, ANNOTATION_WORKLOAD, cJSON_CreateString(w->name));
    if (!cJSON_IsTrue(at(assignment, "topology")))
        return;
    cJSON *gate = cJSON_CreateObject();
    cJSON_AddStringToObject(gate, "name", TOPOLOGY_GATE);
    cJSON_AddItemToArray(array_of(at(pod, "spec"), "schedulingGates"), gate);
    if (!at(annotations, ANNOTATION_TOPOLOGY_REQUIRED) && !at(annotations, ANNOTATION_TOPOLOGY_PREFERRED))
        desired_set(annotations, ANNOTATION_TOPOLOGY_ANY, cJSON_CreateString("true"));
}
