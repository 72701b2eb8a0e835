/* queue.c - what a queued job may do, by its Workload, and what becomes of the Workload. */
#include "operator/plan/queue.h"

#include "common/clock.h"
#include "common/text.h"
#include "operator/plan/desired.h"

#include <stdlib.h>
#include <string.h>

enum { LOOK_AGAIN_MS = 1000, SUBJECT_BYTES = 100, LABEL_VALUE_MAX = 63 };

/* What becomes of the job's Workload. */
enum step {
    STEP_NONE,
    STEP_CREATE,  /* when no pod is active */
    STEP_SPEC,    /* set p->queue.patch */
    STEP_RELEASE, /* when no pod is active */
    STEP_DELETE,  /* the same */
    STEP_FAIL,    /* Finished: the pods cannot be as the admission says */
};

#define LABEL_PODSET WORKLOAD_GROUP "/podset"
#define LABEL_LOCAL_QUEUE WORKLOAD_GROUP "/local-queue-name"
#define LABEL_CLUSTER_QUEUE WORKLOAD_GROUP "/cluster-queue-name"
#define ANNOTATION_WORKLOAD WORKLOAD_GROUP "/workload"
#define TOPOLOGY_GATE WORKLOAD_GROUP "/topology"

static cJSON *at(const cJSON *node, const char *key)
{
    return cJSON_GetObjectItemCaseSensitive(node, key);
}

char *queue_workload_name(struct arena *a, const struct trainjob *job)
{
    return arena_printf(a, "pytorchtrainingjob-%s-%.8s", job->name, job->uid);
}

/* ---- what the Workload should be */

struct wanted {
    struct workload_podset sets[TRAINJOB_TYPES_MAX];
    int n;
    char content[17], sizes[WORKLOAD_SIZES_BYTES];
    const char *priority_group, *priority_kind, *priority_class; /* class "": none */
    int64_t priority;
};

static const struct queue_setting *setting(const struct planner *p, enum queue_setting_kind kind,
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
        const char *name = json_str(at(p->spec->replica_specs[t].template, "spec"), "priorityClassName");
        if (name && name[0])
            return name;
    }
    return NULL;
}

/* The class of the job's label, else of the first template with one, else the cluster's default. Returns the name
 * of a class that does not exist; NULL: all is well. */
static const char *read_priority(const struct planner *p, struct wanted *ret)
{
    const char *label = p->job->queue.priority_class;
    const char *name = label ? label : template_class(p);
    const struct queue_setting *class = setting(p, label ? QUEUE_PRIORITY : QUEUE_POD_PRIORITY, name);

    ret->priority_group = ret->priority_kind = ret->priority_class = "";
    if (!class)
        return name;
    ret->priority_group = label ? WORKLOAD_GROUP : "scheduling.k8s.io";
    ret->priority_kind = label ? "WorkloadPriorityClass" : "PriorityClass";
    ret->priority_class = class->name;
    ret->priority = class->value;
    return NULL;
}

static void read_wanted(const struct planner *p, struct wanted *ret)
{
    const struct elastic *e = &p->spec->elastic;

    *ret = (struct wanted){.n = p->spec->n_replica_specs};
    for (int t = 0; t < ret->n; t++) {
        const struct replica_spec *r = &p->spec->replica_specs[t];
        ret->sets[t] = (struct workload_podset){r->type, r->template, r->replicas,
                                                e->enabled && e->min < r->replicas ? e->min : 0};
    }
    workload_content(ret->sets, ret->n, ret->content);
    workload_sizes(ret->sets, ret->n, ret->sizes);
}

/* ---- the spec of a Workload */

static void copy_quantities(cJSON *spec, const char *list)
{
    static const char *const RESOURCES[] = {"requests", "limits"};
    cJSON *c;

    cJSON_ArrayForEach(c, at(spec, list))
    {
        cJSON *resources = at(c, "resources");
        for (size_t i = 0; i < ARRAY_LEN(RESOURCES); i++)
            if (cJSON_IsObject(at(resources, RESOURCES[i])))
                desired_set(resources, RESOURCES[i], workload_quantities(at(resources, RESOURCES[i])));
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
    const cJSON *meta = at(from->template, "metadata");

    cJSON_AddStringToObject(set, "name", from->name);
    cJSON_AddNumberToObject(set, "count", (double)from->count);
    if (from->min)
        cJSON_AddNumberToObject(set, "minCount", (double)from->min);
    cJSON *template = cJSON_AddObjectToObject(set, "template");
    cJSON *own = cJSON_AddObjectToObject(template, "metadata");
    for (size_t i = 0; i < ARRAY_LEN(META); i++)
        if (cJSON_IsObject(at(meta, META[i])))
            cJSON_AddItemToObject(own, META[i], cJSON_Duplicate(at(meta, META[i]), true));
    cJSON *spec = cJSON_Duplicate(at(from->template, "spec"), true);
    cJSON_AddItemToObject(template, "spec", spec);
    desired_set(spec, "restartPolicy", cJSON_CreateString("Never"));
    copy_quantities(spec, "containers");
    copy_quantities(spec, "initContainers");
    add_topology(set, at(meta, "annotations"));
    return set;
}

static void add_podsets(cJSON *spec, const struct wanted *want)
{
    cJSON *sets = cJSON_AddArrayToObject(spec, "podSets");

    for (int t = 0; t < want->n; t++)
        cJSON_AddItemToArray(sets, podset(&want->sets[t]));
}

/* `clear`: write null where there is none, to remove it from an existing Workload. */
static void add_priority(cJSON *spec, const struct wanted *want, bool clear)
{
    cJSON_AddNumberToObject(spec, "priority", (double)want->priority);
    if (want->priority_class[0]) {
        cJSON *ref = cJSON_AddObjectToObject(spec, "priorityClassRef");
        cJSON_AddStringToObject(ref, "group", want->priority_group);
        cJSON_AddStringToObject(ref, "kind", want->priority_kind);
        cJSON_AddStringToObject(ref, "name", want->priority_class);
    } else if (clear) {
        cJSON_AddNullToObject(spec, "priorityClassRef");
    }
}

static void add_rest(const struct planner *p, cJSON *spec, const struct wanted *want, bool clear)
{
    int64_t max_s = p->job->queue.max_time_s;

    cJSON_AddStringToObject(spec, "queueName", p->job->queue.name);
    add_priority(spec, want, clear);
    if (max_s)
        cJSON_AddNumberToObject(spec, "maximumExecutionTimeSeconds", (double)max_s);
    else if (clear)
        cJSON_AddNullToObject(spec, "maximumExecutionTimeSeconds");
}

static cJSON *new_workload(struct planner *p, const struct wanted *want)
{
    cJSON *o = desired_child(p, WORKLOAD_API_VERSION, "Workload", queue_workload_name(p->a, p->job), NULL);
    cJSON *meta = at(o, "metadata");
    cJSON *spec = cJSON_AddObjectToObject(o, "spec");

    cJSON_AddStringToObject(at(meta, "labels"), WORKLOAD_GROUP "/job-uid", p->job->uid);
    cJSON_AddItemToArray(cJSON_AddArrayToObject(meta, "finalizers"), cJSON_CreateString(WORKLOAD_FINALIZER));
    if (p->job->queue.gated_by)
        cJSON_AddStringToObject(cJSON_AddObjectToObject(meta, "annotations"), ANNOTATION_QUEUE_GATE,
                                p->job->queue.gated_by);
    add_podsets(spec, want);
    add_rest(p, spec, want, false);
    return o;
}

/* ---- the verdict */

static void wait_for(struct planner *p, enum step step, const char *reason, const char *message)
{
    p->queue.verdict = QUEUE_WAIT;
    p->queue.step = step;
    p->queue.reason = reason;
    p->queue.message = message;
}

static void hold(struct planner *p, const char *message)
{
    wait_for(p, STEP_NONE, QUEUE_REASON, message);
    p->queue.verdict = QUEUE_HOLD;
    planner_requeue(p, p->now_ms + LOOK_AGAIN_MS);
}

static bool is_reserved(const struct workload *w)
{
    return w->has_admission || workload_is(w, WORKLOAD_QUOTA_RESERVED);
}

static bool same_priority(const struct workload *w, const struct wanted *want)
{
    return w->priority == want->priority && strcmp(w->priority_class, want->priority_class) == 0 &&
           strcmp(w->priority_group, want->priority_group) == 0;
}

static void set_patch(struct planner *p, cJSON *doc)
{
    p->queue.step = STEP_SPEC;
    p->queue.patch = planner_json(p, doc);
}

/* Without quota the whole spec may change; the Workload keeps its place in the queue. */
static void follow_job(struct planner *p, const struct wanted *want, bool same_sets)
{
    cleanup_json cJSON *doc = cJSON_CreateObject();
    cJSON *spec = cJSON_AddObjectToObject(doc, "spec");
    const struct workload *w = p->queue.workload;

    if (same_sets && strcmp(w->queue, p->job->queue.name) == 0 && same_priority(w, want) &&
        w->max_time_s == p->job->queue.max_time_s)
        return;
    if (!same_sets)
        add_podsets(spec, want);
    add_rest(p, spec, want, true);
    set_patch(p, doc);
}

/* With quota, Kueue accepts a lower count and, of a WorkloadPriorityClass, another priority. */
static void follow_admitted_job(struct planner *p, const struct wanted *want, bool same_content)
{
    cleanup_json cJSON *doc = cJSON_CreateObject();
    cJSON *spec = cJSON_AddObjectToObject(doc, "spec");
    const struct workload *w = p->queue.workload;
    int64_t count = strtoll(w->sizes, NULL, 10);

    if (p->spec->elastic.enabled && same_content && want->sets[0].count < count) {
        cJSON *set = cJSON_CreateObject();
        cJSON_AddNumberToObject(set, "count", (double)want->sets[0].count);
        if (want->sets[0].min)
            cJSON_AddNumberToObject(set, "minCount", (double)want->sets[0].min);
        else
            cJSON_AddNullToObject(set, "minCount");
        cJSON_AddItemToArray(cJSON_AddArrayToObject(spec, "podSets"), set);
    }
    if (!same_priority(w, want) && strcmp(w->priority_group, WORKLOAD_GROUP) == 0 &&
        strcmp(want->priority_group, WORKLOAD_GROUP) == 0)
        add_priority(spec, want, false);
    if (spec->child)
        set_patch(p, doc);
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

static cJSON *member(cJSON *parent, const char *key, bool array)
{
    cJSON *o = at(parent, key);

    if (array ? cJSON_IsArray(o) : cJSON_IsObject(o))
        return o;
    o = array ? cJSON_CreateArray() : cJSON_CreateObject();
    desired_set(parent, key, o);
    return o;
}

/* Set what the assignment says in a pod, or in a pod template. Returns a key that it would overwrite; NULL: none. */
static const char *assign(const struct planner *p, const cJSON *assignment, cJSON *pod)
{
    cJSON *meta = member(pod, "metadata", false), *spec = member(pod, "spec", false);
    const char *conflict = NULL, *c;
    const cJSON *f, *u;
    struct err ignored;

    cJSON_ArrayForEach(f, at(assignment, "flavors"))
    {
        const struct queue_setting *s = setting(p, QUEUE_FLAVOR, f->valuestring);
        cleanup_json cJSON *labels = s ? json_parse(s->node_labels, strlen(s->node_labels), &ignored) : NULL;
        cleanup_json cJSON *tolerations =
            s ? json_parse(s->tolerations, strlen(s->tolerations), &ignored) : NULL;
        c = merge(member(spec, "nodeSelector", false), labels);
        conflict = c ? arena_strdup(p->a, c) : conflict;
        add_tolerations(member(spec, "tolerations", true), tolerations);
    }
    cJSON_ArrayForEach(u, at(assignment, "updates"))
    {
        c = merge(member(spec, "nodeSelector", false), at(u, "nodeSelector"));
        c = c ? c : merge(member(meta, "labels", false), at(u, "labels"));
        c = c ? c : merge(member(meta, "annotations", false), at(u, "annotations"));
        conflict = c ? arena_strdup(p->a, c) : conflict;
        add_tolerations(member(spec, "tolerations", true), at(u, "tolerations"));
    }
    return conflict;
}

/* Check that the admission can be carried out, and take its counts. */
static void admit(struct planner *p)
{
    const struct elastic *e = &p->spec->elastic;
    const cJSON *assignment, *f;
    int t = 0;

    cJSON_ArrayForEach(assignment, p->queue.assignments)
    {
        cJSON_ArrayForEach(f, at(assignment, "flavors"))
        {
            const struct queue_setting *s = setting(p, QUEUE_FLAVOR, f->valuestring);
            if (s && !s->unreadable[0])
                continue;
            hold(p, arena_printf(p->a, "the ResourceFlavor %s %s", f->valuestring,
                                 s ? s->unreadable : "does not exist"));
            return;
        }
        if (t == p->spec->n_replica_specs)
            break;
        cleanup_json cJSON *pod = cJSON_Duplicate(p->spec->replica_specs[t++].template, true);
        const char *key = assign(p, assignment, pod);
        if (key) {
            wait_for(p, STEP_FAIL, QUEUE_REASON_FAILED,
                     arena_printf(p->a, "the admission and the pod template of %s set different values of %s",
                                  p->spec->replica_specs[t - 1].type, key));
            return;
        }
    }
    int64_t count = json_i64(cJSON_GetArrayItem(p->queue.assignments, 0), "count", -1);
    int64_t limit = strtoll(p->queue.workload->sizes, NULL, 10); /* lower after the job has shrunk */
    count = limit < count ? limit : count;
    if (t != p->spec->n_replica_specs)
        hold(p, "the admission has not one assignment for each replicaSpec");
    else if (e->enabled && count > 0 && count < p->spec->replica_specs[0].replicas) {
        struct trainjob_spec *less = arena_new(p->a, struct trainjob_spec);
        *less = *p->spec;
        less->pods = less->elastic.expected = less->replica_specs[0].replicas = (int32_t)count;
        p->spec = less;
    }
}

/* Why Kueue has not admitted it. */
static const char *waiting_message(struct planner *p)
{
    const struct workload *w = p->queue.workload;
    const struct workload_condition *quota = &w->conditions[WORKLOAD_QUOTA_RESERVED];
    char due[CLOCK_RFC3339_BYTES];

    if (quota->state == COND_TRUE)
        return "the quota is reserved; admission checks are pending";
    p->queue.silent = !quota->message[0];
    const char *message =
        quota->message[0] ? arena_strdup(p->a, quota->message) : "Kueue has not tried it yet";
    if (w->requeue_ms <= p->now_ms)
        return message;
    clock_rfc3339(w->requeue_ms, false, due);
    return arena_printf(p->a, "%s; not before %s", message, due);
}

static void decide_by_conditions(struct planner *p, const struct wanted *want)
{
    const struct workload *w = p->queue.workload;
    bool same_content = strcmp(w->content, want->content) == 0;
    bool same_sets = same_content && strcmp(w->sizes, want->sizes) == 0;
    const struct workload_condition *evicted = &w->conditions[WORKLOAD_EVICTED];
    struct err ignored;

    if (evicted->state == COND_TRUE && is_reserved(w)) {
        wait_for(p, STEP_RELEASE, arena_printf(p->a, "Evicted %.60s", evicted->reason),
                 arena_strdup(p->a, evicted->message));
        return;
    }
    if (!is_reserved(w)) {
        wait_for(p, STEP_NONE, QUEUE_REASON, waiting_message(p));
        follow_job(p, want, same_sets);
        return;
    }
    if (!workload_is(w, WORKLOAD_ADMITTED) || !w->has_admission) {
        wait_for(p, same_sets ? STEP_NONE : STEP_DELETE, QUEUE_REASON, waiting_message(p));
        return;
    }
    p->queue.verdict = QUEUE_RUN;
    p->queue.assignments = json_parse(w->assignments, strlen(w->assignments), &ignored);
    p->queue.changed = !same_content || (!same_sets && want->sets[0].count >= strtoll(w->sizes, NULL, 10));
    follow_admitted_job(p, want, same_content);
    admit(p);
}

static void decide(struct planner *p)
{
    const struct workload *w = p->queue.workload;
    struct wanted want;

    read_wanted(p, &want);
    const char *lacks = read_priority(p, &want);
    if (lacks && (!w || !is_reserved(w))) {
        hold(p,
             arena_printf(p->a, "the %s %s does not exist",
                          p->job->queue.priority_class ? "WorkloadPriorityClass" : "PriorityClass", lacks));
        p->queue.verdict = QUEUE_WAIT;
    } else if (!w) {
        wait_for(p, STEP_CREATE, QUEUE_REASON, "its Workload is not created yet");
        p->queue.silent = true;
    } else if (w->deleting) {
        wait_for(p, STEP_NONE, QUEUE_REASON, "its Workload is being deleted");
    } else if (workload_is(w, WORKLOAD_FINISHED)) {
        const struct workload_condition *end = &w->conditions[WORKLOAD_FINISHED];
        bool failed = strcmp(end->reason, QUEUE_REASON_FAILED) == 0 && strcmp(w->content, want.content) == 0;
        wait_for(p, failed ? STEP_NONE : STEP_DELETE, failed ? QUEUE_REASON_FAILED : QUEUE_REASON,
                 failed ? arena_strdup(p->a, end->message) : "its Workload is finished");
    } else {
        decide_by_conditions(p, &want);
    }
}

void queue_begin(struct planner *p)
{
    const struct plan_queue *q = &p->in->queue;
    const char *name = queue_workload_name(p->a, p->job);

    for (int i = 0; i < q->n_workloads; i++)
        if (strcmp(q->workloads[i]->name, name) == 0)
            p->queue.workload = q->workloads[i];
    if (q->mode == QUEUE_OFF || !p->job->queue.name || jobstatus_finished(&p->st))
        return;
    if (q->mode == QUEUE_UNSEEN)
        hold(p, "the operator has not listed Kueue's objects yet");
    else if (p->spec->paused)
        wait_for(p, STEP_DELETE, NULL, NULL);
    else
        decide(p);
}

/* A job that changed keeps its admission while it runs. */
void queue_settle(struct planner *p)
{
    if (p->queue.verdict == QUEUE_RUN && p->queue.changed && !planner_gang_runs(p))
        wait_for(p, STEP_DELETE, QUEUE_REASON, "the job has changed; it queues again");
}

/* Without the first words of Kueue's longest message, which are always the same. */
static const char *subject_of(struct planner *p)
{
    static const char PREFIX[] = "couldn't assign flavors to pod set ";
    const char *message = p->queue.message;
    const char *rest = strncmp(message, PREFIX, strlen(PREFIX)) == 0 ? strchr(message, ':') : NULL;
    char *text = arena_alloc(p->a, SUBJECT_BYTES);

    rest = rest ? rest + 1 + (rest[1] == ' ') : message;
    text_ellipsis(text, SUBJECT_BYTES, (size_t)snprintf(text, SUBJECT_BYTES, "%s", rest));
    return text;
}

void queue_report(struct planner *p)
{
    bool speaks = strcmp(p->queue.reason, QUEUE_REASON) == 0 && !p->queue.silent;

    planner_reason_about(p, p->queue.reason, speaks ? subject_of(p) : NULL, p->queue.message);
    if (p->st.conditions[COND_INITIALIZED].state != COND_TRUE)
        planner_condition(p, COND_INITIALIZED, false, QUEUE_REASON, p->queue.message);
}

/* ---- actions */

/* Whether a pod may still use what the quota is for. */
static bool has_active_pods(const struct plan_input *in)
{
    for (int i = 0; i < in->n_pods; i++)
        if (in->pods[i]->phase != POD_SUCCEEDED && in->pods[i]->phase != POD_FAILED)
            return true;
    return false;
}

static struct action *act_on(struct planner *p, enum action_kind kind, const struct workload *w)
{
    struct action *act = planner_add(p, &p->workloads, kind);

    act->child = CHILD_WORKLOAD;
    act->name = arena_strdup(p->a, w->name);
    act->uid = arena_strdup(p->a, w->uid);
    return act;
}

static void edit(struct planner *p, const struct workload *w, enum action_edit what)
{
    struct action *act = act_on(p, ACTION_EDIT, w);

    act->edit = what;
    act->version = arena_strdup(p->a, w->version);
    act->body = what == EDIT_SPEC ? p->queue.patch : NULL;
}

/* One condition has one manager: an apply removes what the same manager applied before and leaves out now. */
static void apply(struct planner *p, struct action_list *list, const struct workload *w,
                  enum workload_condition_type type, bool on, const char *reason, const char *message)
{
    const char *name = workload_condition_name(type);
    cleanup_json cJSON *doc = cJSON_CreateObject();
    char now[CLOCK_RFC3339_BYTES];
    struct action *act = planner_add(p, list, ACTION_APPLY);

    clock_rfc3339(p->now_ms, false, now);
    cJSON_AddStringToObject(doc, "apiVersion", WORKLOAD_API_VERSION);
    cJSON_AddStringToObject(doc, "kind", "Workload");
    cJSON *meta = cJSON_AddObjectToObject(doc, "metadata");
    cJSON_AddStringToObject(meta, "name", w->name);
    cJSON_AddStringToObject(meta, "namespace", w->ns);
    cJSON_AddStringToObject(meta, "uid", w->uid);
    cJSON *c = cJSON_CreateObject();
    cJSON_AddItemToArray(cJSON_AddArrayToObject(cJSON_AddObjectToObject(doc, "status"), "conditions"), c);
    cJSON_AddStringToObject(c, "type", name);
    cJSON_AddStringToObject(c, "status", on ? "True" : "False");
    cJSON_AddStringToObject(c, "reason", reason);
    cJSON_AddStringToObject(c, "message", message);
    cJSON_AddStringToObject(c, "lastTransitionTime", now);
    act->child = CHILD_WORKLOAD;
    act->name = arena_strdup(p->a, w->name);
    act->uid = arena_strdup(p->a, w->uid);
    act->manager = arena_printf(p->a, "ptj-operator-%s", name);
    act->body = planner_json(p, doc);
}

/* A deleted Workload loses its finalizer, any other is deleted. */
static void remove_workload(struct planner *p, const struct workload *w)
{
    if (!w->deleting)
        (void)planner_delete(p, &p->workloads, CHILD_WORKLOAD, w->name, w->uid);
    else if (w->finalizer)
        edit(p, w, EDIT_FINALIZER);
}

static void create(struct planner *p)
{
    const struct plan_problem *problem = &p->in->problem;
    struct wanted want;

    if (problem->kind != PROBLEM_NONE && problem->child == CHILD_WORKLOAD && problem->retry_ms > p->now_ms)
        return;
    read_wanted(p, &want);
    (void)read_priority(p, &want);
    (void)planner_create(p, &p->workloads, CHILD_WORKLOAD, queue_workload_name(p->a, p->job),
                         new_workload(p, &want));
}

/* The end of the job. Kueue frees the quota when the Workload is Finished. The finalizer is removed from the next
 * version. */
static void finish(struct planner *p, const struct workload *w)
{
    bool good = p->st.phase == JOB_SUCCEEDED;

    if (!workload_is(w, WORKLOAD_FINISHED) && !w->deleting)
        apply(p, &p->workloads, w, WORKLOAD_FINISHED, true, good ? "Succeeded" : "Failed",
              good ? "The job has succeeded" : "The job has failed");
    else if (w->finalizer)
        edit(p, w, EDIT_FINALIZER);
}

static void report_ready(struct planner *p)
{
    const struct workload *w = p->queue.workload;
    const struct workload_condition *c = &w->conditions[WORKLOAD_PODS_READY];
    bool recovers = strcmp(c->reason, "WaitForRecovery") == 0;
    int done = 0;

    for (int i = 0; i < p->n_slots; i++) {
        const struct pod *pod = p->slots[i].pod;
        done += (pod && pod_is_running(pod)) || planner_slot_done(&p->slots[i]);
    }
    bool ready = done == p->n_slots || (p->spec->elastic.enabled && planner_gang_runs(p));
    if (ready && c->state != COND_TRUE)
        apply(p, &p->ready, w, WORKLOAD_PODS_READY, true, recovers ? "Recovered" : "Started",
              "All pods are ready or have succeeded");
    else if (!ready && c->state == COND_TRUE)
        apply(p, &p->ready, w, WORKLOAD_PODS_READY, false, "WaitForRecovery", "A pod is being replaced");
}

static void act_on_own(struct planner *p, bool active)
{
    const struct workload *w = p->queue.workload;

    switch ((enum step)p->queue.step) {
    case STEP_NONE:
        break;
    case STEP_CREATE:
        if (!active)
            create(p);
        break;
    case STEP_SPEC:
        edit(p, w, EDIT_SPEC);
        break;
    case STEP_RELEASE:
        if (!active)
            edit(p, w, EDIT_RELEASE);
        break;
    case STEP_DELETE:
        if (!active && w)
            remove_workload(p, w);
        break;
    case STEP_FAIL:
        if (!active)
            apply(p, &p->workloads, w, WORKLOAD_FINISHED, true, QUEUE_REASON_FAILED, p->queue.message);
        break;
    }
    if (p->queue.step != STEP_DELETE && w && w->deleting && !active)
        remove_workload(p, w);
    if (p->queue.verdict == QUEUE_RUN)
        report_ready(p);
}

void queue_act(struct planner *p)
{
    const struct plan_queue *q = &p->in->queue;
    bool over = jobstatus_finished(&p->st);
    bool active = has_active_pods(p->in);

    if (q->mode != QUEUE_ON)
        return;
    for (int i = 0; i < q->n_workloads; i++) {
        const struct workload *w = q->workloads[i];
        bool own = w == p->queue.workload;
        if (own && over && !active)
            finish(p, w);
        else if (!over && (!own || p->queue.verdict == QUEUE_FREE))
            remove_workload(p, w);
        else if (over && !own)
            remove_workload(p, w);
    }
    if (!over && p->queue.verdict != QUEUE_FREE)
        act_on_own(p, active);
}

void queue_fill_pod(const struct planner *p, const struct slot *s, cJSON *pod)
{
    const struct workload *w = p->queue.workload;
    const cJSON *assignment = cJSON_GetArrayItem(p->queue.assignments, s->type);
    cJSON *meta = at(pod, "metadata");

    if (p->queue.verdict != QUEUE_RUN)
        return;
    (void)assign(p, assignment, pod);
    cJSON *labels = member(meta, "labels", false), *annotations = member(meta, "annotations", false);
    cJSON_DeleteItemFromObjectCaseSensitive(labels, LABEL_QUEUE);
    desired_set(labels, LABEL_PODSET, cJSON_CreateString(s->spec->type));
    desired_set(labels, LABEL_LOCAL_QUEUE, cJSON_CreateString(w->queue));
    if (w->cluster_queue[0] && strlen(w->cluster_queue) <= LABEL_VALUE_MAX)
        desired_set(labels, LABEL_CLUSTER_QUEUE, cJSON_CreateString(w->cluster_queue));
    desired_set(annotations, ANNOTATION_WORKLOAD, cJSON_CreateString(w->name));
    if (!cJSON_IsTrue(at(assignment, "topology")))
        return;
    cJSON *gate = cJSON_CreateObject();
    cJSON_AddStringToObject(gate, "name", TOPOLOGY_GATE);
    cJSON_AddItemToArray(member(at(pod, "spec"), "schedulingGates", true), gate);
    if (!at(annotations, ANNOTATION_TOPOLOGY_REQUIRED) && !at(annotations, ANNOTATION_TOPOLOGY_PREFERRED))
        desired_set(annotations, ANNOTATION_TOPOLOGY_ANY, cJSON_CreateString("true"));
}

void queue_end(struct planner *p)
{
    cJSON_Delete(p->queue.assignments);
    p->queue.assignments = NULL;
}

void plan_orphans(const struct plan_input *in, struct arena *a, struct plan *out)
{
    struct planner p = {.in = in, .a = a, .now_ms = in->now_ms};

    *out = (struct plan){0};
    for (int i = 0; i < in->queue.n_workloads; i++) {
        const struct workload *w = in->queue.workloads[i];
        if (w->deleting ? !has_active_pods(in) : !in->job)
            remove_workload(&p, w);
    }
    out->actions = p.workloads.items;
    out->n_actions = p.workloads.n;
}
