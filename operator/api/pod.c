/* pod.c - decode the parts of a Pod that the planner uses. */
#include "operator/api/pod.h"

#include "common/contract.h"
#include "common/memory.h"
#include "common/redact.h"
#include "common/sv.h"
#include "common/text.h"
#include "operator/api/trainjob.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

enum {
    MESSAGE_BYTES = 2048,
    WAIT_MESSAGE_BYTES = 512,
    KUBELET_BYTES = 4096, /* of a container's message, before it is cut */
    ADDRESS_BYTES = 45,
    HOLDER_BYTES = 128,
    WORKING_BYTES = 256,
    EVIDENCE_BYTES = 1024
};

/* Every string of struct pod, for packing them after the struct. If one exceeds its limit, a name or an enum
 * value counts as absent, and a message is cut. */
static const struct {
    size_t at, max;
    bool cut;
} STRINGS[] = {
    {offsetof(struct pod, ns), DECODE_LABEL_BYTES, false},
    {offsetof(struct pod, name), DECODE_NAME_BYTES, false},
    {offsetof(struct pod, uid), DECODE_UID_BYTES, false},
    {offsetof(struct pod, owner_uid), DECODE_UID_BYTES, false},
    {offsetof(struct pod, version), DECODE_VERSION_BYTES, false},
    {offsetof(struct pod, unreadable), DECODE_UNREADABLE_BYTES, true},
    {offsetof(struct pod, type), DECODE_LABEL_BYTES, false},
    {offsetof(struct pod, hash), DECODE_LABEL_BYTES, false},
    {offsetof(struct pod, node), DECODE_NAME_BYTES, false},
    {offsetof(struct pod, ip), ADDRESS_BYTES, false},
    {offsetof(struct pod, reason), DECODE_REASON_BYTES, false},
    {offsetof(struct pod, message), WAIT_MESSAGE_BYTES, true},
    {offsetof(struct pod, disruption), DECODE_REASON_BYTES, false},
    {offsetof(struct pod, disruption_msg), WAIT_MESSAGE_BYTES, true},
    {offsetof(struct pod, unplaced_by), WAIT_MESSAGE_BYTES, true},
    {offsetof(struct pod, finalizer), HOLDER_BYTES, true},
    {offsetof(struct pod, working), WORKING_BYTES, true},
    {offsetof(struct pod, evidence), EVIDENCE_BYTES, true},
    {offsetof(struct pod, training.name), DECODE_LABEL_BYTES, false},
    {offsetof(struct pod, training.reason), DECODE_REASON_BYTES, false},
    {offsetof(struct pod, training.message), MESSAGE_BYTES, true},
    {offsetof(struct pod, init.name), DECODE_LABEL_BYTES, false},
    {offsetof(struct pod, init.reason), DECODE_REASON_BYTES, false},
    {offsetof(struct pod, init.message), MESSAGE_BYTES, true},
};

const char *const gang_schedulers[] = {"none", "coscheduling", "volcano", "native", NULL};

static const char *or_empty(const char *s)
{
    return s ? s : "";
}

int32_t api_label_number(const cJSON *labels, const char *key, int32_t max, int32_t fallback)
{
    const char *s = json_str(labels, key);
    int64_t v;

    return s && sv_i64(sv_from(s), 0, max, &v) ? (int32_t)v : fallback;
}

const cJSON *api_controller(const cJSON *metadata)
{
    const cJSON *ref;

    cJSON_ArrayForEach(ref, json_child(metadata, "ownerReferences"))
    {
        const char *version = or_empty(json_str(ref, "apiVersion"));
        if (cJSON_IsTrue(json_child(ref, "controller")))
            return strcmp(or_empty(json_str(ref, "kind")), TRAINJOB_KIND) == 0 &&
                           sv_starts(sv_from(version), TRAINJOB_GROUP "/")
                       ? ref
                       : NULL;
    }
    return NULL;
}

const char *api_controller_uid(const cJSON *metadata)
{
    const char *uid = or_empty(json_str(api_controller(metadata), "uid"));

    return strlen(uid) <= DECODE_UID_BYTES ? uid : "";
}

static enum gang_scheduler read_gang(const cJSON *labels)
{
    int i = decode_index(gang_schedulers, json_str(labels, LABEL_GANG));

    return i < 0 ? GANG_NONE : (enum gang_scheduler)i;
}

bool pod_has_native_group(const cJSON *object)
{
    return json_find(object, (const char *[]){"spec", "schedulingGroup", "podGroupName", NULL});
}

static int read_metadata(const cJSON *meta, struct pod *p, struct err *err)
{
    const cJSON *labels = json_child(meta, "labels");
    struct object_names names;

    if (decode_names(meta, "Pod", &names, err) < 0)
        return -1;
    p->ns = names.ns;
    p->name = names.name;
    p->uid = names.uid;
    p->version = names.version;
    p->owner_uid = api_controller_uid(meta);
    p->type = or_empty(json_str(labels, LABEL_TYPE));
    p->hash = or_empty(json_str(labels, LABEL_TEMPLATE_HASH));
    p->index = api_label_number(labels, LABEL_INDEX, TRAINJOB_PODS_MAX - 1, -1);
    p->attempt = api_label_number(labels, LABEL_ATTEMPT, COUNT_MAX, -1);
    p->restart = api_label_number(labels, LABEL_RESTART, COUNT_MAX, 0);
    p->created_ms = decode_instant(meta, "creationTimestamp");
    p->deletion_ms = decode_instant(meta, "deletionTimestamp");
    p->gang = read_gang(labels);
    p->forced = p->deletion_ms && json_i64(meta, "deletionGracePeriodSeconds", 30) == 0;
    p->avoids = json_str(json_child(meta, "annotations"), ANNOTATION_AVOIDED_NODES) != NULL;
    p->finalizer = or_empty(cJSON_GetStringValue(cJSON_GetArrayItem(json_child(meta, "finalizers"), 0)));
    return 0;
}

static enum pod_phase read_phase(const cJSON *status)
{
    static const char *const NAMES[] = {"Pending", "Running", "Succeeded", "Failed", NULL};
    const char *s = json_str(status, "phase");
    int i = s ? decode_index(NAMES, s) : POD_PENDING;

    return i < 0 ? POD_PHASE_UNKNOWN : (enum pod_phase)i;
}

static void set_unplaced(struct pod *p, enum pod_unplaced why, const char *by)
{
    if (by && by[0]) {
        p->unplaced = why;
        p->unplaced_by = by;
    }
}

/* Why a pod has no node, also before a scheduler reports it in a condition. The last reason that applies
 * wins. */
static void read_unplaced(const cJSON *spec, const cJSON *status, struct pod *p)
{
    const cJSON *claim;

    set_unplaced(p, UNPLACED_SCHEDULER, json_str(spec, "schedulerName"));
    cJSON_ArrayForEach(claim, json_child(spec, "resourceClaims"))
    {
        const char *from = json_str(claim, "resourceClaimTemplateName");
        if (!json_item_with(json_child(status, "resourceClaimStatuses"), "name", json_str(claim, "name")))
            set_unplaced(p, UNPLACED_CLAIM, from);
    }
    set_unplaced(p, UNPLACED_GATE,
                 json_str(cJSON_GetArrayItem(json_child(spec, "schedulingGates"), 0), "name"));
}

static void read_scheduled(const cJSON *condition, const char *state, const char *reason, struct pod *p)
{
    if (p->unplaced == UNPLACED_SCHEDULER)
        p->unplaced = UNPLACED_NO;
    if (strcmp(state, "True") == 0)
        p->since_ms = decode_instant(condition, "lastTransitionTime");
    else if (strcmp(reason, "Unschedulable") == 0 && p->unplaced != UNPLACED_GATE)
        set_unplaced(p, UNPLACED_UNSCHEDULABLE, json_str(condition, "message"));
}

static void read_conditions(const cJSON *status, struct pod *p)
{
    const cJSON *c;

    cJSON_ArrayForEach(c, json_child(status, "conditions"))
    {
        const char *type = or_empty(json_str(c, "type"));
        const char *state = or_empty(json_str(c, "status"));
        const char *reason = or_empty(json_str(c, "reason"));
        if (strcmp(type, "DisruptionTarget") == 0 && strcmp(state, "True") == 0) {
            p->disruption = reason[0] ? reason : "Disruption";
            p->disruption_msg = or_empty(json_str(c, "message"));
        } else if (strcmp(type, "PodScheduled") == 0) {
            read_scheduled(c, state, reason, p);
        } else if (strcmp(type, "Ready") == 0) {
            /* The node lifecycle controller gives no reason, a kubelet always does. */
            p->node_lost = strcmp(state, "False") == 0 && !reason[0];
        }
    }
}

/* NULL: no valid exit code. Without one the end is unknown, and must not count as success. */
static const cJSON *how_it_ended(const cJSON *terminated)
{
    int64_t code = json_i64(terminated, "exitCode", INT64_MAX);

    return code >= INT32_MIN && code <= INT32_MAX ? terminated : NULL;
}

static void read_container(const cJSON *status, struct pod_container *c)
{
    const cJSON *state = json_child(status, "state");
    const cJSON *waiting = json_child(state, "waiting");
    const cJSON *ended = how_it_ended(json_child(state, "terminated"));
    const cJSON *what = ended ? ended : waiting;

    c->state = ended                          ? CONTAINER_TERMINATED
               : waiting                      ? CONTAINER_WAITING
               : json_child(state, "running") ? CONTAINER_RUNNING
                                              : CONTAINER_NONE;
    c->reason = or_empty(json_str(what, "reason"));
    c->message = text_tail(or_empty(json_str(what, "message")), KUBELET_BYTES).p;
    c->exit_code = (int32_t)json_i64(ended, "exitCode", 0);
    c->signal = (int32_t)json_i64(ended, "signal", 0);
    c->finished_ms = decode_instant(ended, "finishedAt");
}

bool pod_is_sidecar(const cJSON *init_container)
{
    return strcmp(or_empty(json_str(init_container, "restartPolicy")), "Always") == 0;
}

/* Read how the last run of a restarted container ended: that shows the problem, also while it waits or runs
 * again. */
static bool read_last_end(const cJSON *status, struct pod_container *c)
{
    const cJSON *ended = how_it_ended(json_find(status, (const char *[]){"lastState", "terminated", NULL}));

    if (c->state == CONTAINER_TERMINATED)
        return true;
    if (!ended || (c->state != CONTAINER_RUNNING && strcmp(c->reason, "CrashLoopBackOff") != 0))
        return false;
    c->exit_code = (int32_t)json_i64(ended, "exitCode", 0);
    c->message = text_tail(or_empty(json_str(ended, "message")), KUBELET_BYTES).p;
    return true;
}

/* Whether later containers wait for this one: for the end of an init container, for the start of a sidecar. */
static bool is_awaited(const struct pod_container *c, bool sidecar, const cJSON *status, const struct pod *p)
{
    if (p->training.state == CONTAINER_RUNNING)
        return false;
    if (c->state == CONTAINER_RUNNING)
        return !sidecar || cJSON_IsFalse(json_child(status, "started"));
    return c->state == CONTAINER_WAITING ||
           (c->state == CONTAINER_TERMINATED && sidecar && p->phase == POD_PENDING);
}

/* Find the first init container that failed; if none did, the first that the training waits for. */
static void read_init_containers(const cJSON *object, const cJSON *status, struct pod *p)
{
    const cJSON *c;
    const cJSON *specs = json_find(object, (const char *[]){"spec", "initContainers", NULL});

    cJSON_ArrayForEach(c, json_child(status, "initContainerStatuses"))
    {
        struct pod_container init = {.name = or_empty(json_str(c, "name"))};
        read_container(c, &init);
        const bool sidecar = pod_is_sidecar(json_item_with(specs, "name", init.name));
        const bool failed = init.state == CONTAINER_TERMINATED && init.exit_code != 0 && !sidecar;
        if (!failed && (p->init.state != CONTAINER_NONE || !is_awaited(&init, sidecar, c, p)))
            continue;
        p->sidecar = sidecar;
        p->crashed = !failed && read_last_end(c, &init);
        p->init = init;
        if (init.state == CONTAINER_RUNNING)
            p->since_ms =
                decode_instant(json_find(c, (const char *[]){"state", "running", NULL}), "startedAt");
        if (failed)
            return;
    }
}

const cJSON *pod_training_container(const cJSON *object)
{
    const cJSON *annotations = json_find(object, (const char *[]){"metadata", "annotations", NULL});
    const char *named = json_str(annotations, ANNOTATION_TRAINING_CONTAINER);
    const cJSON *spec = json_child(object, "spec");
    const cJSON *c = json_item_with(json_child(spec, "containers"), "name", named);

    return c ? c : trainjob_training_container(spec);
}

bool pod_has_env(const cJSON *container, const char *name)
{
    return json_item_with(json_child(container, "env"), "name", name);
}

/* containerStatuses are sorted by name, not in the order of the spec: find ours by name. Fills `working`, cut
 * to its size. */
static void read_containers(const cJSON *object, const cJSON *status, struct pod *p,
                            char working[static WORKING_BYTES + 1])
{
    struct pod_container beside = {.state = CONTAINER_NONE};
    size_t len = 0;
    const cJSON *c;

    p->training.name = or_empty(json_str(pod_training_container(object), "name"));
    p->keyed = pod_has_env(pod_training_container(object), CONTRACT_ENV_JOB_KEY);
    cJSON_ArrayForEach(c, json_child(status, "containerStatuses"))
    {
        struct pod_container read = {.name = or_empty(json_str(c, "name"))};
        read_container(c, &read);
        if (strcmp(read.name, p->training.name) == 0) {
            p->training = read;
            continue;
        }
        if (read.state != CONTAINER_TERMINATED && len <= WORKING_BYTES)
            len +=
                (size_t)snprintf(working + len, WORKING_BYTES + 1 - len, "%s%s", len ? ", " : "", read.name);
        if (read.state == CONTAINER_WAITING &&
            (beside.state == CONTAINER_NONE || strcmp(read.reason, "ContainerCreating") != 0))
            beside = read;
    }
    if (p->training.state == CONTAINER_TERMINATED && p->phase != POD_SUCCEEDED && p->phase != POD_FAILED)
        p->working = working;
    read_init_containers(object, status, p);
    p->beside = p->init.state == CONTAINER_NONE && p->training.state == CONTAINER_RUNNING &&
                beside.state == CONTAINER_WAITING;
    if (p->beside)
        p->init = beside;
}

/* Add a line, unless it does not fit or `what`, a name by others, could be taken for several words. */
static void add_evidence(char *out, const char *kind, const char *what, const char *how)
{
    size_t len = strlen(out);

    if (what[0] && !strpbrk(what, "\t\n") && !strpbrk(how, "\t\n") &&
        len + strlen(what) + strlen(how) + 4 <= EVIDENCE_BYTES)
        snprintf(out + len, EVIDENCE_BYTES + 1 - len, "%s\t%s\t%s\n", kind, what, how);
}

static void read_ends(const cJSON *statuses, char *out)
{
    const cJSON *c;
    char code[16];

    cJSON_ArrayForEach(c, statuses)
    {
        const cJSON *ended = how_it_ended(json_find(c, (const char *[]){"state", "terminated", NULL}));
        int32_t n = (int32_t)json_i64(ended, "exitCode", 0);
        snprintf(code, sizeof(code), "%d", n);
        if (n)
            add_evidence(out, "c", or_empty(json_str(c, "name")), code);
    }
}

static void read_evidence(const cJSON *status, const struct pod *p, char out[static EVIDENCE_BYTES + 1])
{
    const cJSON *c;

    if (p->phase != POD_FAILED && !p->deletion_ms &&
        (p->training.state != CONTAINER_TERMINATED || p->training.exit_code == 0))
        return;
    read_ends(json_child(status, "containerStatuses"), out);
    read_ends(json_child(status, "initContainerStatuses"), out);
    cJSON_ArrayForEach(c, json_child(status, "conditions"))
        add_evidence(out, "p", or_empty(json_str(c, "type")), or_empty(json_str(c, "status")));
}

/* Keep the strings within their limits. */
static struct pod *pack(struct pod *p, struct arena *a)
{
    const char **fields[ARRAY_LEN(STRINGS)];

    for (size_t i = 0; i < ARRAY_LEN(STRINGS); i++) {
        const char **s = fields[i] = (const char **)(void *)((char *)p + STRINGS[i].at);
        *s = or_empty(*s);
        if (strlen(*s) > STRINGS[i].max)
            *s = STRINGS[i].cut ? arena_strndup(a, *s, text_head(*s, STRINGS[i].max)) : "";
    }
    return decode_pack(p, sizeof(*p), fields, ARRAY_LEN(fields));
}

/* If the text begins with a report of our launcher (plan/rootcause.h), return it with secrets hidden in its
 * decoded strings; else NULL. Searching the JSON text could mistake a closing quote for the begin of a
 * secret. */
static const char *hide_in_report(char *text, struct arena *a)
{
    static const char *const MEMBERS[] = {"rank",    "exitCode",   "signal", "host",
                                          "message", "noProgress", NULL};
    const char *behind;
    cleanup_json cJSON *o =
        strncmp(text, "{\"rank\":", 8) == 0 ? cJSON_ParseWithOpts(text, &behind, false) : NULL;
    cJSON *m;

    if (!o)
        return NULL;
    cJSON_ArrayForEach(m, o)
    {
        if (decode_index(MEMBERS, m->string) < 0 || cJSON_IsObject(m) || cJSON_IsArray(m))
            return NULL;
        if (cJSON_IsString(m))
            redact_secrets(m->valuestring);
    }
    redact_secrets(text + (behind - text));
    cleanup_free char *json = memory_must(cJSON_PrintUnformatted(o));
    return arena_printf(a, "%s%s", json, behind);
}

/* Hide secrets before the message is cut: they are recognised by the words before them. */
static void hide_secrets(struct pod_container *c, bool ended, struct arena *a)
{
    if (!c->message || !c->message[0])
        return;
    char *words = arena_strdup(a, c->message);
    const char *report = hide_in_report(words, a);
    if (!report)
        redact_secrets(words);
    c->message = text_tail(report ? report : words, ended ? MESSAGE_BYTES : WAIT_MESSAGE_BYTES).p;
}

struct pod *pod_decode(const cJSON *object, const struct err *unreadable, struct err *err)
{
    cleanup_arena struct arena words = {0};
    struct pod p = {.unreadable = unreadable ? unreadable->msg : ""};
    const cJSON *status = json_child(object, "status");
    char working[WORKING_BYTES + 1] = "";
    char evidence[EVIDENCE_BYTES + 1] = "";

    if (read_metadata(json_child(object, "metadata"), &p, err) < 0)
        return NULL;
    if (p.gang == GANG_NATIVE && !unreadable && !pod_has_native_group(object))
        p.attempt = -1; /* started without the others of its attempt */
    p.node = or_empty(json_str(json_child(object, "spec"), "nodeName"));
    p.ip = or_empty(json_str(status, "podIP"));
    p.host_network = cJSON_IsTrue(json_find(object, (const char *[]){"spec", "hostNetwork", NULL}));
    int64_t deadline_s = json_i64(json_child(object, "spec"), "activeDeadlineSeconds", 0);
    p.deadline_s = deadline_s > 0 && deadline_s <= INT32_MAX ? (int32_t)deadline_s : 0;
    p.phase = POD_PHASE_UNKNOWN;
    if (!unreadable)
        p.phase = read_phase(status);
    p.reason = or_empty(json_str(status, "reason"));
    p.message = or_empty(json_str(status, "message"));
    if (!p.node[0])
        read_unplaced(json_child(object, "spec"), status, &p);
    read_conditions(status, &p);
    read_containers(object, status, &p, working);
    read_evidence(status, &p, evidence);
    p.evidence = evidence;
    hide_secrets(&p.training, p.training.state == CONTAINER_TERMINATED, &words);
    hide_secrets(&p.init, p.crashed || p.init.state == CONTAINER_TERMINATED, &words);
    return pack(&p, &words);
}

bool pod_ended(const struct pod *p)
{
    return p->training.state == CONTAINER_TERMINATED || p->phase == POD_FAILED || p->phase == POD_SUCCEEDED;
}

bool pod_is_running(const struct pod *p)
{
    return p->phase == POD_RUNNING && p->training.state == CONTAINER_RUNNING && !p->deletion_ms;
}
