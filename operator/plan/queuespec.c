/* queuespec.c - build the spec of a job's Workload, and compare it with the existing one. */
#include "operator/plan/queuespec.h"

#include "common/hash.h"
#include "common/sv.h"
#include "common/text.h"
#include "operator/plan/desired.h"
#include "operator/plan/queue.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { QUEUE_AGAIN_MS = 30000, EDITS_AT_ONCE = 3 };

const struct queue_setting *queuespec_setting(const struct planner *p, enum queue_setting_kind kind,
                                              const char *name)
{
    const struct plan_queue *q = &p->in->queue;

    for (int i = 0; i < q->n_settings[kind]; i++)
        if (name ? strcmp(q->settings[kind][i]->name, name) == 0 : q->settings[kind][i]->is_default)
            return q->settings[kind][i];
    return NULL;
}

static const char *template_class(const struct planner *p)
{
    for (int t = 0; t < p->spec->n_replica_specs; t++) {
        const char *name =
            json_str(json_child(p->spec->replica_specs[t].template, "spec"), "priorityClassName");
        if (name && name[0])
            return name;
    }
    return p->spec->scheduling.priority_class;
}

/* The class of the job's label, else of the first template with one, else of the schedulingPolicy, else the cluster's
 * default. */
static void read_priority(const struct planner *p, struct queuespec *q)
{
    const char *label = p->job->queue.priority_class;
    const char *name = label ? label : template_class(p);
    const struct queue_setting *class =
        queuespec_setting(p, label ? QUEUE_PRIORITY : QUEUE_POD_PRIORITY, name);

    q->class_group = class ? label ? WORKLOAD_GROUP : "scheduling.k8s.io" : "";
    q->class_kind = label ? "WorkloadPriorityClass" : "PriorityClass";
    q->class_name = class ? class->name : "";
    q->priority = class ? class->value : 0;
    q->unknown = class ? NULL : name;
}

void queuespec_read(const struct planner *p, struct queuespec *ret)
{
    const struct elastic *e = &p->spec->elastic;

    *ret = (struct queuespec){.n = p->spec->n_replica_specs};
    for (int t = 0; t < ret->n; t++) {
        const struct replica_spec *r = &p->spec->replica_specs[t];
        ret->sets[t] = (struct workload_podset){r->type, r->template, r->replicas,
                                                e->enabled && e->min < r->replicas ? e->min : 0};
    }
    workload_content(ret->sets, ret->n, ret->content);
    workload_sizes(ret->sets, ret->n, ret->sizes);
    read_priority(p, ret);
}

bool queuespec_same_content(const struct queuespec *q, const struct workload *w)
{
    return strcmp(w->content, q->content) == 0;
}

static void copy_quantities(cJSON *spec, const char *list)
{
    static const char *const RESOURCES[] = {"requests", "limits"};
    cJSON *c;

    cJSON_ArrayForEach(c, json_child(spec, list))
    {
        cJSON *resources = json_child(c, "resources");
        for (size_t i = 0; i < ARRAY_LEN(RESOURCES); i++)
            if (cJSON_IsObject(json_child(resources, RESOURCES[i])))
                json_set(resources, RESOURCES[i], workload_quantities(json_child(resources, RESOURCES[i])));
    }
}

static void add_topology(cJSON *set, const cJSON *annotations)
{
    const char *required = json_str(annotations, ANNOTATION_TOPOLOGY_REQUIRED);
    const char *preferred = json_str(annotations, ANNOTATION_TOPOLOGY_PREFERRED);
    const char *any = json_str(annotations, ANNOTATION_TOPOLOGY_ANY);

    if (!required && !preferred && !any)
        return;
    cJSON *o = cJSON_AddObjectToObject(set, "topologyRequest");
    if (required)
        cJSON_AddStringToObject(o, "required", required);
    else if (preferred)
        cJSON_AddStringToObject(o, "preferred", preferred);
    else
        cJSON_AddBoolToObject(o, "unconstrained", strcmp(any, "true") == 0);
    cJSON_AddStringToObject(o, "podIndexLabel", LABEL_INDEX);
}

static cJSON *podset(const struct workload_podset *from)
{
    static const char *const META[] = {"labels", "annotations"};
    cJSON *set = cJSON_CreateObject();
    const cJSON *meta = json_child(from->template, "metadata");

    cJSON_AddStringToObject(set, "name", from->name);
    cJSON_AddNumberToObject(set, "count", (double)from->count);
    if (from->min)
        cJSON_AddNumberToObject(set, "minCount", (double)from->min);
    cJSON *template = cJSON_AddObjectToObject(set, "template");
    cJSON *own = cJSON_AddObjectToObject(template, "metadata");
    for (size_t i = 0; i < ARRAY_LEN(META); i++)
        if (cJSON_IsObject(json_child(meta, META[i])))
            cJSON_AddItemToObject(own, META[i], cJSON_Duplicate(json_child(meta, META[i]), true));
    cJSON *spec = cJSON_Duplicate(json_child(from->template, "spec"), true);
    cJSON_AddItemToObject(template, "spec", spec);
    json_set(spec, "restartPolicy", cJSON_CreateString("Never"));
    copy_quantities(spec, "containers");
    copy_quantities(spec, "initContainers");
    add_topology(set, json_child(meta, "annotations"));
    return set;
}

static void add_priority(cJSON *spec, const struct queuespec *q)
{
    cJSON_AddNumberToObject(spec, "priority", (double)q->priority);
    if (!q->class_name[0]) {
        cJSON_AddNullToObject(spec, "priorityClassRef");
        return;
    }
    cJSON *ref = cJSON_AddObjectToObject(spec, "priorityClassRef");
    cJSON_AddStringToObject(ref, "group", q->class_group);
    cJSON_AddStringToObject(ref, "kind", q->class_kind);
    cJSON_AddStringToObject(ref, "name", q->class_name);
}

/* {"spec": ...} with null for what is not set. */
static cJSON *whole(const struct planner *p, const struct queuespec *q)
{
    cJSON *doc = cJSON_CreateObject();
    cJSON *spec = cJSON_AddObjectToObject(doc, "spec");
    cJSON *sets = cJSON_AddArrayToObject(spec, "podSets");
    int64_t max_s = p->job->queue.max_time_s;

    for (int t = 0; t < q->n; t++)
        cJSON_AddItemToArray(sets, podset(&q->sets[t]));
    cJSON_AddStringToObject(spec, "queueName", p->job->queue.name);
    add_priority(spec, q);
    cJSON_AddItemToObject(spec, "maximumExecutionTimeSeconds",
                          max_s ? cJSON_CreateNumber((double)max_s) : cJSON_CreateNull());
    return doc;
}

cJSON *queuespec_workload(struct planner *p, const struct queuespec *q)
{
    cJSON *o = desired_child(p, WORKLOAD_API_VERSION, "Workload", queue_workload_name(p->a, p->job), NULL);
    cJSON *meta = json_child(o, "metadata");
    cleanup_json cJSON *doc = whole(p, q);

    cJSON_AddStringToObject(json_child(meta, "labels"), WORKLOAD_GROUP "/job-uid", p->job->uid);
    cJSON_AddItemToArray(cJSON_AddArrayToObject(meta, "finalizers"), cJSON_CreateString(WORKLOAD_FINALIZER));
    if (p->job->queue.gated_by)
        cJSON_AddStringToObject(cJSON_AddObjectToObject(meta, "annotations"), ANNOTATION_QUEUE_GATE,
                                p->job->queue.gated_by);
    cJSON_AddObjectToObject(o, "spec");
    (void)workload_set_spec(o, doc);
    return o;
}

static bool same_priority(const struct workload *w, const struct queuespec *q)
{
    return w->priority == q->priority && strcmp(w->priority_class, q->class_name) == 0 &&
           strcmp(w->priority_group, q->class_group) == 0;
}

/* The next name of a list "a, b", and the rest after it. */
static struct sv next_name(const char **list)
{
    size_t len = strcspn(*list, ",");
    struct sv name = sv_trim((struct sv){*list, len});

    *list += len + ((*list)[len] == ',');
    return name;
}

static bool has_name(const char *list, struct sv name)
{
    bool found = false;

    while (*list && !found) {
        struct sv next = next_name(&list);
        found = name.len && next.len == name.len && memcmp(next.p, name.p, name.len) == 0;
    }
    return found;
}

/* The gates of the Workload that the job still has: Kueue lets nobody add one. */
static const char *gates_left(struct planner *p, const struct workload *w)
{
    const char *job = p->job->queue.gated_by ? p->job->queue.gated_by : "";
    char *left = arena_alloc(p->a, WORKLOAD_GATES_BYTES + 1);

    left[0] = '\0';
    for (const char *rest = w->gated_by; *rest;) {
        struct sv name = next_name(&rest);
        if (has_name(job, name))
            text_add(left, WORKLOAD_GATES_BYTES + 1, "%s%.*s", left[0] ? "," : "", (int)name.len, name.p);
    }
    return left;
}

static void set_gates(cJSON *doc, const char *gates)
{
    cJSON *annotations = cJSON_AddObjectToObject(cJSON_AddObjectToObject(doc, "metadata"), "annotations");

    cJSON_AddItemToObject(annotations, ANNOTATION_QUEUE_GATE,
                          gates[0] ? cJSON_CreateString(gates) : cJSON_CreateNull());
}

const char *queuespec_waiting_patch(struct planner *p, const struct queuespec *q, const struct workload *w)
{
    const char *gates = gates_left(p, w);
    bool same_gates = strcmp(gates, w->gated_by) == 0;

    if (queuespec_same_content(q, w) && strcmp(w->sizes, q->sizes) == 0 &&
        strcmp(w->queue, p->job->queue.name) == 0 && same_priority(w, q) &&
        w->max_time_s == p->job->queue.max_time_s && same_gates)
        return NULL;
    cleanup_json cJSON *doc = whole(p, q);
    if (!same_gates)
        set_gates(doc, gates);
    return json_print(doc, p->a);
}

/* Kueue accepts a lower count and, of a WorkloadPriorityClass, another priority. Of these MultiKueue passes on only the
 * priority. */
const char *queuespec_admitted_patch(struct planner *p, const struct queuespec *q, const struct workload *w)
{
    cleanup_json cJSON *doc = cJSON_CreateObject();
    cJSON *spec = cJSON_AddObjectToObject(doc, "spec");
    const struct workload_podset *s = &q->sets[0];

    if (p->spec->elastic.enabled && !p->queue.changed && !p->queue.remote &&
        s->count < strtoll(w->sizes, NULL, 10)) {
        cJSON *set = cJSON_CreateObject();
        cJSON_AddNumberToObject(set, "count", (double)s->count);
        cJSON_AddItemToArray(cJSON_AddArrayToObject(spec, "podSets"), set);
    }
    if (!same_priority(w, q) && strcmp(w->priority_group, WORKLOAD_GROUP) == 0 &&
        strcmp(q->class_group, WORKLOAD_GROUP) == 0)
        add_priority(spec, q);
    return spec->child ? json_print(doc, p->a) : NULL;
}

bool queuespec_may_edit(struct planner *p)
{
    struct plan_seen *seen = &p->out->seen;
    uint64_t hash = hash_fnv1a(HASH_FNV1A, p->queue.patch, strlen(p->queue.patch));
    int64_t due = seen->edit_ms + QUEUE_AGAIN_MS;

    if (hash != seen->edit)
        seen->edits = 0;
    else if (seen->edits == EDITS_AT_ONCE && p->now_ms >= due)
        seen->edits--;
    if (seen->edits == EDITS_AT_ONCE) {
        planner_requeue(p, due);
        return false;
    }
    seen->edit = hash;
    seen->edit_ms = p->now_ms;
    seen->edits++;
    return true;
}

bool queuespec_may_queue_again(struct planner *p, const struct workload *w)
{
    struct plan_seen *seen = &p->out->seen;

    if (w->deleting || p->spec->paused || strcmp(seen->queued_again, w->uid) == 0)
        return true;
    if (seen->queued_again_ms && !planner_is_due(p, seen->queued_again_ms + QUEUE_AGAIN_MS))
        return false;
    seen->queued_again_ms = p->now_ms;
    snprintf(seen->queued_again, sizeof(seen->queued_again), "%s", w->uid);
    return true;
}
