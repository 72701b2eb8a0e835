/* gang.c - build a PodGroup for an attempt and join its pods to it, for each of the gang schedulers. */
#include "operator/plan/gang.h"

#include "operator/api/quantity.h"
#include "operator/plan/desired.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* By these the schedulers find a pod's PodGroup. */
static const char COSCHEDULING_LABEL[] = "scheduling.x-k8s.io/pod-group";
static const char VOLCANO_ANNOTATION[] = "scheduling.k8s.io/group-name";
static const char NATIVE_FIELD[] = "schedulingGroup";

/* Names of jobs are longer than the limit of a label's value allows with the largest attempt. */
enum { JOB_NAME_MAX = 52, RESOURCES_MAX = 32 };

static char *group_name(const struct planner *p, int32_t attempt)
{
    bool fits = strlen(p->job->name) <= JOB_NAME_MAX;

    return arena_printf(p->a, "%s-%d", fits ? p->job->name : p->job->uid, attempt);
}

bool gang_is_theirs(const cJSON *template)
{
    const cJSON *spec = json_child(template, "spec");
    const char *scheduler = json_str(spec, "schedulerName");

    return (scheduler && scheduler[0] && strcmp(scheduler, "default-scheduler") != 0) ||
           json_child(spec, NATIVE_FIELD) ||
           json_find(template, (const char *[]){"metadata", "labels", COSCHEDULING_LABEL, NULL}) ||
           json_find(template, (const char *[]){"metadata", "annotations", VOLCANO_ANNOTATION, NULL});
}

enum gang_scheduler gang_of(const struct planner *p)
{
    for (int i = 0; i < p->n_slots; i++)
        if (p->slots[i].pod)
            return p->slots[i].pod->gang;
    for (int i = 0; i < p->spec->n_replica_specs; i++)
        if (gang_is_theirs(p->spec->replica_specs[i].template))
            return GANG_NONE;
    return p->in->gangs.scheduler;
}

/* ---- pods */

void gang_join(const struct planner *p, cJSON *pod)
{
    enum gang_scheduler scheduler = gang_of(p);
    cJSON *meta = desired_object(pod, "metadata");
    cJSON *spec = desired_object(pod, "spec");
    const char *class = p->spec->scheduling.priority_class;
    const char *group = group_name(p, p->st.attempt);

    if (class && !json_str(spec, "priorityClassName"))
        json_set(spec, "priorityClassName", cJSON_CreateString(class));
    if (scheduler == GANG_NONE)
        return;
    json_set(desired_object(meta, "labels"), LABEL_GANG, cJSON_CreateString(gang_schedulers[scheduler]));
    if (scheduler == GANG_COSCHEDULING)
        json_set(desired_object(meta, "labels"), COSCHEDULING_LABEL, cJSON_CreateString(group));
    else if (scheduler == GANG_VOLCANO)
        json_set(desired_object(meta, "annotations"), VOLCANO_ANNOTATION, cJSON_CreateString(group));
    else
        cJSON_AddStringToObject(cJSON_AddObjectToObject(spec, NATIVE_FIELD), "podGroupName", group);
    if (scheduler != GANG_NATIVE && p->in->gangs.scheduler_name)
        json_set(spec, "schedulerName", cJSON_CreateString(p->in->gangs.scheduler_name));
}

/* ---- the PodGroup */

static int min_member(const struct planner *p)
{
    if (p->spec->scheduling.min_available)
        return p->spec->scheduling.min_available;
    return p->spec->elastic.enabled ? p->spec->elastic.min : p->spec->pods;
}

/* Add `times` the quantities of a list to the numbers of *sum. Exact to 2^53 of a resource's unit. */
static void add_amounts(cJSON *sum, const cJSON *list, const cJSON *unless_in, int times)
{
    const cJSON *q;

    cJSON_ArrayForEach(q, list)
    {
        cJSON *have = json_child(sum, q->string);
        if (json_child(unless_in, q->string) || (!have && cJSON_GetArraySize(sum) == RESOURCES_MAX))
            continue;
        if (!have)
            have = cJSON_AddNumberToObject(sum, q->string, 0);
        have->valuedouble += times * quantity_amount(q);
    }
}

/* What a pod needs while it trains: its containers and sidecars. A limit without a request is the request, too. */
static void add_requests(cJSON *sum, const cJSON *containers, bool init, int pods)
{
    const cJSON *c;

    cJSON_ArrayForEach(c, containers)
    {
        const cJSON *resources = json_child(c, "resources"), *requests = json_child(resources, "requests");
        if (init && !pod_is_sidecar(c))
            continue;
        add_amounts(sum, requests, NULL, pods);
        add_amounts(sum, json_child(resources, "limits"), requests, pods);
    }
}

/* The requests of the first n pods together, for Volcano's queues: {"cpu":"1500m","memory":"1024"}. */
static cJSON *min_resources(const struct planner *p, int n)
{
    cleanup_json cJSON *sum = cJSON_CreateObject();
    cJSON *o = cJSON_CreateObject();
    const cJSON *q;
    char text[64];

    for (int i = 0; i < p->spec->n_replica_specs && n > 0; i++) {
        const struct replica_spec *r = &p->spec->replica_specs[i];
        const cJSON *spec = json_child(r->template, "spec");
        int pods = r->replicas < n ? r->replicas : n;
        add_requests(sum, json_child(spec, "containers"), false, pods);
        add_requests(sum, json_child(spec, "initContainers"), true, pods);
        n -= pods;
    }
    cJSON_ArrayForEach(q, sum)
    {
        bool whole = q->valuedouble == floor(q->valuedouble);
        snprintf(text, sizeof(text), whole ? "%.0f" : "%.0fm",
                 whole ? q->valuedouble : ceil(q->valuedouble * 1000 - 1e-6));
        cJSON_AddStringToObject(o, q->string, text);
    }
    return o;
}

static cJSON *group_spec(const struct planner *p, enum gang_scheduler scheduler)
{
    const struct scheduling *s = &p->spec->scheduling;
    int n = min_member(p);
    cJSON *spec = cJSON_CreateObject();

    if (scheduler == GANG_NATIVE) {
        cJSON *policy = cJSON_AddObjectToObject(spec, "schedulingPolicy");
        cJSON_AddNumberToObject(cJSON_AddObjectToObject(policy, "gang"), "minCount", n);
        return spec;
    }
    cJSON_AddNumberToObject(spec, "minMember", n);
    if (scheduler == GANG_COSCHEDULING) {
        if (s->timeout_s.set)
            cJSON_AddNumberToObject(spec, "scheduleTimeoutSeconds", (double)s->timeout_s.v);
        return spec;
    }
    if (s->queue)
        cJSON_AddStringToObject(spec, "queue", s->queue);
    if (s->priority_class)
        cJSON_AddStringToObject(spec, "priorityClassName", s->priority_class);
    cJSON_AddItemToObject(spec, "minResources", min_resources(p, n));
    return spec;
}

void gang_create(struct planner *p)
{
    static const char *const VERSIONS[] = {[GANG_COSCHEDULING] = "scheduling.x-k8s.io/v1alpha1",
                                           [GANG_VOLCANO] = "scheduling.volcano.sh/v1beta1"};
    enum gang_scheduler scheduler = gang_of(p);
    char *name = group_name(p, p->st.attempt);

    if (scheduler == GANG_NONE)
        return;
    cJSON *o = desired_child(p, scheduler == GANG_NATIVE ? "" : VERSIONS[scheduler], "PodGroup", name, NULL);
    if (scheduler == GANG_NATIVE) /* the path of the request decides */
        cJSON_DeleteItemFromObject(o, "apiVersion");
    cJSON_AddItemToObject(o, "spec", group_spec(p, scheduler));
    struct action *act = planner_create(p, &p->creates, CHILD_GROUP, name, o);
    act->gang = scheduler;
    act->keep = planner_has_pods(p);
}

/* Native PodGroups stay while pods refer to them. */
bool gang_is_missed(const struct planner *p)
{
    for (int i = 0; i < p->n_slots; i++) {
        const struct pod *pod = p->slots[i].pod;
        if (pod && pod->gang == GANG_COSCHEDULING && pod->unplaced == UNPLACED_UNSCHEDULABLE &&
            strstr(pod->unplaced_by, "PodGroup not found"))
            return true;
    }
    return false;
}

static void add_delete(struct planner *p, enum gang_scheduler scheduler, int32_t attempt)
{
    char *name = group_name(p, attempt);

    if (scheduler == GANG_NONE)
        return;
    for (int i = 0; i < p->gangs.n; i++)
        if (p->gangs.items[i].gang == scheduler && strcmp(p->gangs.items[i].name, name) == 0)
            return;
    planner_on(p, &p->gangs, ACTION_DELETE, CHILD_GROUP, name, "")->gang = scheduler;
}

/* The pods' labels show which PodGroup an attempt has. An attempt may end before it has a pod. */
void gang_delete(struct planner *p)
{
    int32_t before = p->job->status.attempt;
    bool ends = jobstatus_finished(&p->st) && !jobstatus_finished(&p->job->status);

    for (int i = 0; i < p->in->n_pods; i++) {
        const struct pod *pod = p->in->pods[i];
        if (!pod->deletion_ms && pod->attempt >= 0 && (ends || pod->attempt < p->st.attempt))
            add_delete(p, pod->gang, pod->attempt);
    }
    if (ends || p->st.attempt > before)
        add_delete(p, p->in->gangs.scheduler, before);
}
