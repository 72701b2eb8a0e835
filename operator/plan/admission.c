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

/* A key that both have with different values; NULL: none. */
static const char *conflict_of(const cJSON *a, const cJSON *b)
{
    const cJSON *m;

    cJSON_ArrayForEach(m, b)
    {
        const char *have = m->string ? json_str(a, m->string) : NULL;
        if (have && cJSON_IsString(m) && strcmp(have, m->valuestring) != 0)
            return m->string;
    }
    return NULL;
}

/* Add what `from` has and `to` lacks. */
static void merge(cJSON *to, const cJSON *from)
{
    const cJSON *m;

    cJSON_ArrayForEach(m, from)
    {
        if (cJSON_IsString(m) && m->string && !json_str(to, m->string))
            json_set(to, m->string, cJSON_CreateString(m->valuestring));
    }
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

static const char *const MAPS[] = {"nodeSelector", "labels", "annotations"};
static const char *const HOLDERS[] = {"spec", "metadata", "metadata"}; /* of a pod */

/* `from` is an update of an admission check, or has its members. */
static void add_update(cJSON *assignment, cJSON *sets, const cJSON *from)
{
    for (size_t i = 0; i < ARRAY_LEN(MAPS); i++) {
        const char *key = conflict_of(json_child(sets, MAPS[i]), json_child(from, MAPS[i]));
        if (key)
            json_set(assignment, "conflict", cJSON_CreateString(key));
        merge(json_child(sets, MAPS[i]), json_child(from, MAPS[i]));
    }
    add_tolerations(json_child(sets, "tolerations"), json_child(from, "tolerations"));
}

static void add_flavor(const struct planner *p, cJSON *assignment, cJSON *sets, const char *name)
{
    const struct queue_setting *s = queuespec_setting(p, QUEUE_FLAVOR, name);
    cleanup_json cJSON *update = cJSON_CreateObject();
    struct err ignored;

    if (!s)
        return;
    cJSON_AddItemToObject(update, "nodeSelector",
                          json_parse(s->node_labels, strlen(s->node_labels), &ignored));
    cJSON_AddItemToObject(update, "tolerations",
                          json_parse(s->tolerations, strlen(s->tolerations), &ignored));
    add_update(assignment, sets, update);
}

/* What the assignment's flavours and the updates of checks set in each pod, read once: MAPS and tolerations. A key that two
 * of them set differently is the member "conflict" of the assignment. */
static const cJSON *sets_of(const struct planner *p, cJSON *assignment)
{
    cJSON *sets = json_child(assignment, "sets");
    const cJSON *each;

    if (sets || !assignment)
        return sets;
    sets = cJSON_AddObjectToObject(assignment, "sets");
    for (size_t i = 0; i < ARRAY_LEN(MAPS); i++)
        cJSON_AddObjectToObject(sets, MAPS[i]);
    cJSON_AddArrayToObject(sets, "tolerations");
    cJSON_ArrayForEach(each, json_child(assignment, "flavors"))
        add_flavor(p, assignment, sets, cJSON_IsString(each) ? each->valuestring : "");
    cJSON_ArrayForEach(each, json_child(assignment, "updates")) add_update(assignment, sets, each);
    return sets;
}

const char *admission_conflict(const struct planner *p, cJSON *assignment, const cJSON *template)
{
    const cJSON *sets = sets_of(p, assignment);
    const char *key = json_str(assignment, "conflict");

    for (size_t i = 0; i < ARRAY_LEN(MAPS) && !key; i++)
        key = conflict_of(json_child(json_child(template, HOLDERS[i]), MAPS[i]), json_child(sets, MAPS[i]));
    return key;
}

static void assign(const struct planner *p, cJSON *assignment, cJSON *pod)
{
    const cJSON *sets = sets_of(p, assignment), *tolerations = json_child(sets, "tolerations");

    for (size_t i = 0; i < ARRAY_LEN(MAPS); i++)
        if (cJSON_GetArraySize(json_child(sets, MAPS[i])) > 0)
            merge(desired_object(desired_object(pod, HOLDERS[i]), MAPS[i]), json_child(sets, MAPS[i]));
    if (cJSON_GetArraySize(tolerations) > 0)
        add_tolerations(desired_array(json_child(pod, "spec"), "tolerations"), tolerations);
}

void admission_fill_pod(const struct planner *p, const struct slot *s, cJSON *pod)
{
    const struct workload *w = p->queue.workload;
    cJSON *assignment = cJSON_GetArrayItem(p->queue.assignments, s->type);
    cJSON *meta = json_child(pod, "metadata");

    if (p->queue.verdict != QUEUE_RUN)
        return;
    assign(p, assignment, pod);
    cJSON *labels = desired_object(meta, "labels"), *annotations = desired_object(meta, "annotations");
    cJSON_DeleteItemFromObjectCaseSensitive(labels, LABEL_QUEUE);
    json_set(labels, LABEL_PODSET, cJSON_CreateString(s->spec->type));
    if (strlen(w->queue) <= LABEL_VALUE_MAX)
        json_set(labels, LABEL_LOCAL_QUEUE, cJSON_CreateString(w->queue));
    if (w->cluster_queue[0] && strlen(w->cluster_queue) <= LABEL_VALUE_MAX)
        json_set(labels, LABEL_CLUSTER_QUEUE, cJSON_CreateString(w->cluster_queue));
    json_set(annotations, ANNOTATION_WORKLOAD, cJSON_CreateString(w->name));
    if (!cJSON_IsTrue(json_child(assignment, "topology")))
        return;
    cJSON *gate = cJSON_CreateObject();
    cJSON_AddStringToObject(gate, "name", TOPOLOGY_GATE);
    cJSON_AddItemToArray(desired_array(json_child(pod, "spec"), "schedulingGates"), gate);
    if (!json_child(annotations, ANNOTATION_TOPOLOGY_REQUIRED) &&
        !json_child(annotations, ANNOTATION_TOPOLOGY_PREFERRED))
        json_set(annotations, ANNOTATION_TOPOLOGY_ANY, cJSON_CreateString("true"));
}
