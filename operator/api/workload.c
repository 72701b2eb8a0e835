/* workload.c - decode Kueue's Workload, ResourceFlavor and priority classes, and change a whole Workload. */
#include "operator/api/workload.h"

#include "common/clock.h"
#include "common/text.h"
#include "operator/api/decode.h"
#include "operator/api/pod.h"
#include "operator/api/quantity.h"

#include <stdio.h>
#include <string.h>

enum { CONDITIONS_READ = 64, CHECKS_READ = 64 };

static const char *const CONDITION_NAMES[] = {"QuotaReserved", "Admitted", "Evicted",
                                              "PodsReady",     "Finished", NULL};

const char *workload_condition_name(enum workload_condition_type type)
{
    return CONDITION_NAMES[type];
}

/* A text of at most `max` bytes; "" where it is absent or longer. */
static const char *text(const cJSON *node, const char *key, size_t max)
{
    const char *s = json_str(node, key);

    return s && strlen(s) <= max ? s : "";
}

/* ---- what Kueue decides from */

cJSON *workload_quantities(const cJSON *resources)
{
    cJSON *copy = cJSON_CreateObject();
    const cJSON *q;
    char number[32];

    cJSON_ArrayForEach(q, resources)
    {
        if (cJSON_IsNumber(q))
            snprintf(number, sizeof(number), "%.15g", q->valuedouble);
        if (q->string && (cJSON_IsNumber(q) || cJSON_IsString(q)))
            cJSON_AddStringToObject(copy, q->string, cJSON_IsNumber(q) ? number : q->valuestring);
    }
    return copy;
}

static void add_if_any(cJSON *to, const char *key, const cJSON *value)
{
    bool empty =
        !value || cJSON_IsNull(value) || ((cJSON_IsObject(value) || cJSON_IsArray(value)) && !value->child);

    if (!empty)
        cJSON_AddItemToObject(to, key, cJSON_Duplicate(value, true));
}

/* Only what a typed writer keeps: texts that are not empty, and numbers. */
static void add_scalar(cJSON *to, const char *key, const cJSON *value)
{
    if (cJSON_IsNumber(value) || (cJSON_IsString(value) && value->valuestring[0]))
        add_if_any(to, key, value);
}

/* By value: Kueue writes 1 for 1000m. */
static void add_amounts(cJSON *to, const char *key, const cJSON *resources)
{
    cleanup_json cJSON *amounts = cJSON_CreateObject();
    const cJSON *q;
    char amount[32];

    cJSON_ArrayForEach(q, resources)
    {
        snprintf(amount, sizeof(amount), "%.15g", quantity_amount(q));
        if (q->string && (cJSON_IsNumber(q) || cJSON_IsString(q)))
            cJSON_AddStringToObject(amounts, q->string, amount);
    }
    add_if_any(to, key, amounts);
}

static void add_containers(cJSON *to, const char *key, const cJSON *list)
{
    static const char *const RESOURCES[] = {"requests", "limits"};
    cJSON *out = cJSON_AddArrayToObject(to, key);
    const cJSON *c;

    cJSON_ArrayForEach(c, list)
    {
        cJSON *o = cJSON_CreateObject();
        add_scalar(o, "name", json_child(c, "name"));
        add_scalar(o, "restartPolicy", json_child(c, "restartPolicy"));
        for (size_t i = 0; i < ARRAY_LEN(RESOURCES); i++)
            add_amounts(o, RESOURCES[i], json_child(json_child(c, "resources"), RESOURCES[i]));
        cJSON_AddItemToArray(out, o);
    }
}

static void add_tolerations(cJSON *to, const cJSON *list)
{
    static const char *const MEMBERS[] = {"key", "operator", "value", "effect", "tolerationSeconds"};
    cleanup_json cJSON *out = cJSON_CreateArray();
    const cJSON *t;

    cJSON_ArrayForEach(t, list)
    {
        cJSON *o = cJSON_CreateObject();
        for (size_t i = 0; i < ARRAY_LEN(MEMBERS); i++)
            add_scalar(o, MEMBERS[i], json_child(t, MEMBERS[i]));
        cJSON_AddItemToArray(out, o);
    }
    add_if_any(to, "tolerations", out);
}

static void add_selector(cJSON *to, const cJSON *selector)
{
    cleanup_json cJSON *out = cJSON_CreateObject();
    const cJSON *label;

    cJSON_ArrayForEach(label, selector)
    {
        if (label->string && cJSON_IsString(label))
            cJSON_AddStringToObject(out, label->string, label->valuestring);
    }
    add_if_any(to, "nodeSelector", out);
}

/* Members that the API server drops from a Workload, such as null, do not count: they stay in the job's template. */
void workload_content(const struct workload_podset *sets, int n, char out[static 17])
{
    static const char *const TOPOLOGY[] = {ANNOTATION_TOPOLOGY_REQUIRED, ANNOTATION_TOPOLOGY_PREFERRED,
                                           ANNOTATION_TOPOLOGY_ANY};
    uint64_t h = (uint64_t)n;

    for (int i = 0; i < n; i++) {
        cleanup_json cJSON *o = cJSON_CreateObject();
        const cJSON *spec = json_child(sets[i].template, "spec");
        const cJSON *annotations = json_child(json_child(sets[i].template, "metadata"), "annotations");
        cJSON_AddStringToObject(o, "name", sets[i].name);
        add_containers(o, "containers", json_child(spec, "containers"));
        add_containers(o, "initContainers", json_child(spec, "initContainers"));
        add_tolerations(o, json_child(spec, "tolerations"));
        add_selector(o, json_child(spec, "nodeSelector"));
        add_scalar(o, "runtimeClassName", json_child(spec, "runtimeClassName"));
        add_amounts(o, "overhead", json_child(spec, "overhead"));
        for (size_t k = 0; k < ARRAY_LEN(TOPOLOGY); k++)
            add_scalar(o, TOPOLOGY[k], json_child(annotations, TOPOLOGY[k]));
        h = h * 31 + json_hash(o);
    }
    snprintf(out, 17, "%016llx", (unsigned long long)h);
}

void workload_sizes(const struct workload_podset *sets, int n, char out[static WORKLOAD_SIZES_BYTES])
{
    out[0] = '\0';
    for (int i = 0; i < n; i++) {
        text_add(out, WORKLOAD_SIZES_BYTES, "%s%lld", i ? "," : "", (long long)sets[i].count);
        if (sets[i].min)
            text_add(out, WORKLOAD_SIZES_BYTES, "/%lld", (long long)sets[i].min);
    }
}

/* ---- decode a Workload */

static void read_spec(const cJSON *spec, struct arena *a, struct workload *w)
{
    struct workload_podset sets[WORKLOAD_PODSETS_MAX];
    char *content = arena_alloc(a, 17);
    char *sizes = arena_alloc(a, WORKLOAD_SIZES_BYTES);
    const cJSON *class = json_child(spec, "priorityClassRef");
    const cJSON *set;
    int n = 0;

    cJSON_ArrayForEach(set, json_child(spec, "podSets"))
    {
        if (n < WORKLOAD_PODSETS_MAX)
            sets[n++] =
                (struct workload_podset){text(set, "name", DECODE_LABEL_BYTES), json_child(set, "template"),
                                         json_i64(set, "count", 0), json_i64(set, "minCount", 0)};
    }
    workload_content(sets, n, content);
    workload_sizes(sets, n, sizes);
    w->content = content;
    w->sizes = sizes;
    w->queue = text(spec, "queueName", DECODE_NAME_BYTES);
    w->priority_group = text(class, "group", DECODE_NAME_BYTES);
    w->priority_class = text(class, "name", DECODE_NAME_BYTES);
    w->priority = json_i64(spec, "priority", 0);
    w->max_time_s = json_i64(spec, "maximumExecutionTimeSeconds", 0);
}

static void read_conditions(const cJSON *list, struct arena *a, struct workload *w)
{
    const cJSON *c;
    int n = 0;

    cJSON_ArrayForEach(c, list)
    {
        const char *message = json_str(c, "message");
        int type = decode_index(CONDITION_NAMES, json_str(c, "type"));
        if (n++ == CONDITIONS_READ)
            return;
        if (type < 0)
            continue;
        struct workload_condition *to = &w->conditions[type];
        to->state = condition_state_of(c);
        to->reason = text(c, "reason", DECODE_REASON_BYTES);
        if (message)
            to->message = arena_strndup(a, message, text_head(message, WORKLOAD_MESSAGE_BYTES));
    }
}

/* What the admission checks want to be set in the pods of this podSet. */
static void add_updates(cJSON *to, const cJSON *checks, const char *name)
{
    static const char *const MEMBERS[] = {"labels", "annotations", "nodeSelector", "tolerations"};
    cJSON *list = cJSON_AddArrayToObject(to, "updates");
    const cJSON *check, *update;
    int n = 0;

    cJSON_ArrayForEach(check, checks)
    {
        if (n++ == CHECKS_READ)
            return;
        cJSON_ArrayForEach(update, json_child(check, "podSetUpdates"))
        {
            if (strcmp(text(update, "name", DECODE_LABEL_BYTES), name) != 0)
                continue;
            cJSON *o = cJSON_CreateObject();
            for (size_t i = 0; i < ARRAY_LEN(MEMBERS); i++)
                add_if_any(o, MEMBERS[i], json_child(update, MEMBERS[i]));
            cJSON_AddItemToArray(list, o);
        }
    }
}

static int read_admission(const cJSON *status, struct arena *a, struct workload *w, struct err *err)
{
    const cJSON *admission = json_child(status, "admission");
    cleanup_json cJSON *list = cJSON_CreateArray();
    const cJSON *set;
    int n = 0;

    if (!cJSON_IsObject(admission))
        return 0;
    w->has_admission = true;
    w->cluster_queue = text(admission, "clusterQueue", DECODE_NAME_BYTES);
    cJSON_ArrayForEach(set, json_child(admission, "podSetAssignments"))
    {
        if (n++ == WORKLOAD_PODSETS_MAX)
            break;
        cJSON *o = cJSON_CreateObject();
        const char *name = text(set, "name", DECODE_LABEL_BYTES);
        cJSON_AddStringToObject(o, "name", name);
        cJSON_AddNumberToObject(o, "count", (double)json_i64(set, "count", -1));
        add_if_any(o, "flavors", json_child(set, "flavors"));
        cJSON_AddBoolToObject(o, "topology", cJSON_IsObject(json_child(set, "topologyAssignment")));
        add_updates(o, json_child(status, "admissionChecks"), name);
        cJSON_AddItemToArray(list, o);
    }
    w->assignments = json_print(list, a);
    if (strlen(w->assignments) > WORKLOAD_ADMISSION_BYTES)
        return err_set(err, ERR_INVALID, "Workload: status.admission: over %d bytes of JSON",
                       WORKLOAD_ADMISSION_BYTES);
    return 0;
}

/* Whether it has ours, and can lose it; and the others, as JSON. */
static bool read_finalizers(const cJSON *meta, struct arena *a, const char **ret_others)
{
    cleanup_json cJSON *others = cJSON_CreateArray();
    const cJSON *f;
    bool found = false;

    cJSON_ArrayForEach(f, json_child(meta, "finalizers"))
    {
        bool ours = cJSON_IsString(f) && strcmp(f->valuestring, WORKLOAD_FINALIZER) == 0;
        found |= ours;
        if (!ours)
            cJSON_AddItemToArray(others, cJSON_Duplicate(f, true));
    }
    *ret_others = json_print(others, a);
    bool fits = strlen(*ret_others) <= WORKLOAD_FINALIZERS_BYTES;
    if (!fits)
        *ret_others = "";
    return found && fits;
}

static struct workload *packed(struct workload *w)
{
    const char **fields[15 + 2 * WORKLOAD_CONDITIONS] = {
        &w->ns,         &w->name,          &w->uid,         &w->owner_uid,      &w->version,
        &w->queue,      &w->sizes,         &w->content,     &w->priority_group, &w->priority_class,
        &w->unreadable, &w->cluster_queue, &w->assignments, &w->gated_by,       &w->other_finalizers};
    size_t n = 15;

    for (int t = 0; t < WORKLOAD_CONDITIONS; t++) {
        fields[n++] = &w->conditions[t].reason;
        fields[n++] = &w->conditions[t].message;
    }
    return decode_pack(w, sizeof(*w), fields, n);
}

struct workload *workload_decode(const cJSON *object, const struct err *unreadable, struct err *err)
{
    const cJSON *meta = json_child(object, "metadata");
    cleanup_arena struct arena a = {0};
    struct object_names n;

    if (decode_names(meta, "Workload", &n, err) < 0)
        return NULL;
    struct workload w = {
        .ns = n.ns,
        .name = n.name,
        .uid = n.uid,
        .version = n.version,
        .owner_uid = api_controller_uid(meta),
        .gated_by = text(json_child(meta, "annotations"), ANNOTATION_QUEUE_GATE, WORKLOAD_GATES_BYTES),
        .unreadable = unreadable ? unreadable->msg : "",
        .bytes = strlen(json_print(object, &a)),
        .deleting = json_str(meta, "deletionTimestamp") != NULL,
        .cluster_queue = "",
        .assignments = ""};
    for (int t = 0; t < WORKLOAD_CONDITIONS; t++)
        w.conditions[t].reason = w.conditions[t].message = "";
    w.finalizer = read_finalizers(meta, &a, &w.other_finalizers);
    read_spec(json_child(object, "spec"), &a, &w);
    read_conditions(json_child(json_child(object, "status"), "conditions"), &a, &w);
    w.requeue_ms = decode_instant(json_child(json_child(object, "status"), "requeueState"), "requeueAt");
    if (!unreadable && read_admission(json_child(object, "status"), &a, &w, err) < 0)
        return NULL;
    return packed(&w);
}

/* ---- changes */

static bool is_true(const cJSON *condition)
{
    return condition_state_of(condition) == COND_TRUE;
}

static cJSON *condition_of(const cJSON *status, const char *type)
{
    return json_item_with(json_child(status, "conditions"), "type", type);
}

/* The transition time changes only with the state. */
static void set_condition(cJSON *object, const char *type, bool on, const char *reason, const char *message,
                          int64_t now_ms)
{
    cJSON *status = json_child(object, "status");
    cJSON *c = condition_of(status, type);
    bool same = c && json_str(c, "status") && is_true(c) == on;
    char now[CLOCK_RFC3339_BYTES];

    clock_rfc3339(now_ms, false, now);
    if (!json_child(status, "conditions"))
        json_set(status, "conditions", cJSON_CreateArray());
    if (!c) {
        c = cJSON_CreateObject();
        cJSON_AddItemToArray(json_child(status, "conditions"), c);
    }
    json_set(c, "type", cJSON_CreateString(type));
    json_set(c, "status", cJSON_CreateString(on ? "True" : "False"));
    json_set(c, "reason", cJSON_CreateString(reason));
    json_set(c, "message", cJSON_CreateString(message));
    json_set(c, "observedGeneration",
             cJSON_CreateNumber((double)json_i64(json_child(object, "metadata"), "generation", 0)));
    if (!same || !json_str(c, "lastTransitionTime"))
        json_set(c, "lastTransitionTime", cJSON_CreateString(now));
}

/* Kueue ends a Workload that ran too long in all its admissions together. */
static void add_execution_time(cJSON *status, int64_t now_ms)
{
    static const char KEY[] = "accumulatedPastExecutionTimeSeconds";
    const cJSON *admitted = condition_of(status, "Admitted");
    int64_t since_ms = decode_instant(admitted, "lastTransitionTime");

    if (is_true(admitted) && since_ms && since_ms < now_ms)
        json_set(status, KEY,
                 cJSON_CreateNumber((double)(json_i64(status, KEY, 0) + (now_ms - since_ms) / 1000)));
}

/* Kueue puts a Workload back into its queue at once only after these evictions; after others it does so itself,
 * once their cause is gone. */
static bool is_requeued(const char *reason)
{
    return strcmp(reason, "Preempted") == 0 || strcmp(reason, "NodeFailures") == 0;
}

bool workload_release(cJSON *object, int64_t now_ms)
{
    cJSON *status = json_child(object, "status");
    const cJSON *evicted = condition_of(status, "Evicted");
    bool reserved = json_child(status, "admission") || is_true(condition_of(status, "QuotaReserved"));
    const char *reason = json_str(evicted, "reason"), *message = json_str(evicted, "message");

    if (!is_true(evicted) || !reserved || !reason)
        return false;
    message = message ? message : "";
    add_execution_time(status, now_ms);
    json_set(status, "admission", NULL);
    set_condition(object, "QuotaReserved", false, "Pending", message, now_ms);
    set_condition(object, "Admitted", false, "NoReservation", "The workload has no reservation", now_ms);
    set_condition(object, "Requeued", is_requeued(reason), reason, message, now_ms);
    set_condition(object, "PodsReady", false, "WaitForStart", "Not all pods are ready or succeeded", now_ms);
    return true;
}

static void set_members(cJSON *to, const cJSON *patch)
{
    const cJSON *m;

    cJSON_ArrayForEach(m, patch) json_set(to, m->string, cJSON_IsNull(m) ? NULL : cJSON_Duplicate(m, true));
}

bool workload_adopt(cJSON *object, const cJSON *meta)
{
    cJSON *to = json_child(object, "metadata");
    const cJSON *ref;

    cJSON_ArrayForEach(ref, json_child(to, "ownerReferences"))
    {
        if (cJSON_IsTrue(json_child(ref, "controller")))
            return false;
    }
    if (!json_str(json_child(to, "labels"), QUEUE_ORIGIN))
        return false;
    set_members(json_child(to, "labels"), json_child(meta, "labels"));
    if (!json_child(to, "ownerReferences"))
        json_set(to, "ownerReferences", cJSON_CreateArray());
    cJSON_AddItemToArray(json_child(to, "ownerReferences"),
                         cJSON_Duplicate(cJSON_GetArrayItem(json_child(meta, "ownerReferences"), 0), true));
    return true;
}

/* PodSets without a template change the members that they have, by index. */
static bool set_counts(cJSON *spec, const cJSON *sets)
{
    int i = 0;
    const cJSON *set;

    if (!cJSON_IsArray(sets) || json_child(sets->child, "template"))
        return false;
    cJSON_ArrayForEach(set, sets)
    {
        cJSON *to = cJSON_GetArrayItem(json_child(spec, "podSets"), i++);
        if (to)
            set_members(to, set);
    }
    return true;
}

bool workload_set_spec(cJSON *object, const cJSON *patch)
{
    cJSON *spec = json_child(object, "spec");
    cleanup_json cJSON *rest = cJSON_Duplicate(json_child(patch, "spec"), true);

    if (!spec || !rest)
        return false;
    if (set_counts(spec, json_child(rest, "podSets")))
        json_set(rest, "podSets", NULL);
    set_members(spec, rest);
    set_members(json_child(json_child(object, "metadata"), "annotations"),
                json_child(json_child(patch, "metadata"), "annotations"));
    return true;
}

/* ---- flavours and priority classes */

/* As JSON; "" where there is none or where it is too long, which *err reports. */
static const char *json_text(const cJSON *node, const char *key, struct arena *a, struct err *err)
{
    const cJSON *m = json_child(node, key);
    const char *s = m && m->child ? json_print(m, a) : "";

    if (strlen(s) <= QUEUE_SETTING_BYTES)
        return s;
    err_set(err, ERR_INVALID, "spec.%s: over %d bytes of JSON", key, QUEUE_SETTING_BYTES);
    return "";
}

struct queue_setting *queue_setting_decode(const cJSON *object, struct err *err)
{
    const cJSON *meta = json_child(object, "metadata");
    cleanup_arena struct arena a = {0};
    struct err long_err = {0};
    struct queue_setting s = {.name = text(meta, "name", DECODE_NAME_BYTES),
                              .uid = text(meta, "uid", DECODE_UID_BYTES),
                              .value = json_i64(object, "value", 0),
                              .is_default = cJSON_IsTrue(json_child(object, "globalDefault"))};

    if (!s.name[0] || !s.uid[0]) {
        err_set(err, ERR_INVALID, "metadata: expected a name and a uid");
        return NULL;
    }
    s.node_labels = json_text(json_child(object, "spec"), "nodeLabels", &a, &long_err);
    s.tolerations = json_text(json_child(object, "spec"), "tolerations", &a, &long_err);
    s.unreadable = long_err.msg;
    const char **const fields[] = {&s.name, &s.uid, &s.unreadable, &s.node_labels, &s.tolerations};
    return decode_pack(&s, sizeof(s), fields, ARRAY_LEN(fields));
}
