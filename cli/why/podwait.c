/* podwait.c - why a pod does not start or end: what its object shows (plan/podwaiting.h), in the words of events, PVCs and nodes. */
#include "cli/why/finding.h"

#include "common/clock.h"
#include "operator/plan/podwaiting.h"

#include <string.h>

enum { EVENTS_SHOWN = 8 };

/* What an event is about; of a pod: not an earlier one of its name. */
static bool is_about(const cJSON *event, const char *kind, const char *name, const char *uid)
{
    const cJSON *object = json_child(event, "involvedObject");
    const char *which = json_str(object, "uid");

    return same_text(json_str(object, "kind"), kind) && name && same_text(json_str(object, "name"), name) &&
           (!which || !uid || !strcmp(which, uid));
}

/* Whether it is about this container, or does not say about which. */
static bool names_container(const cJSON *event, const char *container)
{
    const char *field = json_str(json_child(event, "involvedObject"), "fieldPath");
    const char *at = field ? strchr(field, '{') : NULL;
    const size_t len = strlen(container);

    return !at || (!strncmp(at + 1, container, len) && !strcmp(at + 1 + len, "}"));
}

const char *podwait_event(const struct why_facts *f, const struct finding *g, const char *reason,
                          const char *begins)
{
    const char *newest = "", *message = NULL;
    const cJSON *e;

    cJSON_ArrayForEach(e, f->events)
    {
        const char *when = json_str(e, "lastTimestamp");
        when = when ? when : json_str(e, "eventTime");
        when = when ? when : "";
        const char *words = json_str(e, "message");
        if (!is_about(e, "Pod", g->pod, g->uid) || !same_text(json_str(e, "reason"), reason) ||
            strcmp(when, newest) < 0 || !words || strncmp(words, begins, strlen(begins)) != 0 ||
            (g->container && !names_container(e, g->container)))
            continue;
        newest = when;
        message = words;
    }
    return message;
}

/* All warnings of this reason about the pod, a line each. */
static const char *warnings(const struct why_facts *f, const struct finding *g, const char *reason,
                            struct arena *a)
{
    const char *all = "";
    const cJSON *e;
    int n = 0;

    cJSON_ArrayForEach(e, f->events)
    {
        const char *message = json_str(e, "message");
        if (n < EVENTS_SHOWN && message && is_about(e, "Pod", g->pod, g->uid) &&
            same_text(json_str(e, "type"), "Warning") && same_text(json_str(e, "reason"), reason) && ++n)
            all = arena_printf(a, "%s\n%.2000s", all, message);
    }
    return all;
}

static const char *condition_of(const cJSON *object, const char *type, const char *member)
{
    const cJSON *c;

    cJSON_ArrayForEach(
        c, json_find(object, (const char *[]){"status", "conditions",
                                              NULL})) if (same_text(json_str(c, "type"),
                                                                    type)) return json_str(c, member);
    return NULL;
}

static bool node_is_lost(const struct why_facts *f, const char *node)
{
    const char *ready = condition_of(finding_object(f->nodes, node), "Ready", "status");

    return ready && strcmp(ready, "True") != 0;
}

/* What the object of a pod that is being started does not show: a mount, a sandbox, a PVC. Events of an earlier stage are
 * over: the kubelet mounts before it pulls, and a pod with a node has been scheduled. */
static void read_starting_events(const struct why_facts *f, const struct pod *pod, struct finding *g)
{
    static const char *const REASONS[] = {"FailedScheduling",       "FailedResourceClaimCreation",
                                          "FailedAttachVolume",     "FailedMount",
                                          "FailedCreatePodSandBox", "NodeNotReady"};
    const bool placed = pod->node[0];
    const char *pulls = podwait_event(f, g, "Pulling", "");

    if (pulls && g->reason)
        g->message = pulls;
    for (size_t i = placed ? 2 : 0; !pulls && i < (placed ? ARRAY_LEN(REASONS) : 2); i++) {
        const char *message = podwait_event(f, g, REASONS[i], "");
        if (!message)
            continue;
        g->reason = REASONS[i];
        g->message = message;
        return;
    }
}

/* A node that is Ready, or not, or of which that is not known. */
static void read_stuck(const struct why_facts *f, const struct pod *pod, struct finding *g, struct arena *a)
{
    const struct waiting w = waiting_for_end(pod, f->now_ms, a);
    const char *ready = condition_of(finding_object(f->nodes, pod->node), "Ready", "status");

    g->reason = w.reason;
    g->message = w.message;
    if (same_text(w.reason, "PodStuckTerminating") && same_text(ready, "True"))
        g->reason = "PodStuckOnReadyNode";
}

/* Why this pod waits, as reason and message; no reason: it just starts. Returns the reason of the events that have more details: those
 * of an earlier trouble do not. */
static const char *read_waiting(const struct why_facts *f, const struct pod *pod, const cJSON *object,
                                struct finding *g, struct arena *a)
{
    const struct waiting w = waiting_of(pod, object, f->now_ms, a);
    const struct pod_container *c = w.container;

    g->container = c ? c->name : NULL;
    g->init = c == &pod->init && !pod->beside;
    g->reason = pod->avoids && same_text(w.reason, "Unschedulable") ? "NodesAvoided" : w.reason;
    g->message = w.words[0] ? w.words : w.message;
    if (!w.reason || same_text(w.reason, "ContainerCreating") || same_text(w.reason, "NotScheduled") ||
        same_text(w.reason, "ResourceClaimNotCreated")) {
        if (pod->init.state != CONTAINER_RUNNING && pod->training.state != CONTAINER_RUNNING)
            read_starting_events(f, pod, g);
        return g->reason;
    }
    const char *words = NULL;
    if (same_text(w.reason, "ImagePullFailed")) {
        g->reason = c->reason;
        if (same_text(c->reason, "ImagePullBackOff")) /* which has no other information */
            words = podwait_event(f, g, "Failed", "Failed to pull");
        g->message = words ? words : g->message;
    } else if (same_text(w.reason, "SidecarNotStarted") || same_text(w.reason, "CrashLoopBackOff")) {
        words = podwait_event(f, g, "Unhealthy", "Startup probe failed");
        g->message = words ? arena_printf(a, "%s; %s", g->message, words) : g->message;
    }
    if (pod->beside && c)
        g->message = arena_printf(a, "container %s: %s", c->name, g->message);
    return c && c->state == CONTAINER_WAITING && !pod->crashed ? "Failed" : NULL;
}

/* Why the pod's PVCs have no volume, in the words of their events. */
static const char *unbound_claims(const struct why_facts *f, struct arena *a)
{
    const char *all = "";
    const cJSON *claim, *e;

    cJSON_ArrayForEach(claim, f->claims)
    {
        const char *name = json_meta(claim, "name"), *message = NULL;
        const char *phase = json_str(json_child(claim, "status"), "phase");
        const char *class = json_str(json_child(claim, "spec"), "storageClassName");
        if (!name || same_text(phase, "Bound"))
            continue;
        cJSON_ArrayForEach(e, f->events) if (is_about(e, "PersistentVolumeClaim", name, NULL)) message =
            json_str(e, "message");
        all = arena_printf(a, "%s Claim %s (storage class %s)%s%.500s.", all, name,
                           class && class[0] ? class : "none", message ? ": " : " is not bound",
                           message ? message : "");
    }
    return all;
}

struct finding podwait_of(const struct why_facts *f, const struct pod *pod, const cJSON *object,
                          struct arena *a)
{
    struct finding g = FINDING_NONE;
    const char *events = NULL;

    g.pod = pod->name;
    g.uid = pod->uid;
    g.reason = NULL;
    if (pod->deletion_ms) {
        read_stuck(f, pod, &g, a);
    } else if (pod_is_running(pod)) {
        g.reason = node_is_lost(f, pod->node) ? "NodeLost" : NULL;
        g.message = condition_of(finding_object(f->nodes, pod->node), "Ready", "message");
    } else if (!pod_ended(pod)) {
        events = read_waiting(f, pod, object, &g, a);
    }
    if (!g.reason)
        return FINDING_NONE;
    g.kind = WHY_WAITING;
    g.reason = arena_strdup(a, g.reason);
    /* The scheduler's words on preemption add nothing. */
    g.message = g.message ? g.message : "";
    const char *preemption = strstr(g.message, " preemption: ");
    g.message =
        arena_strndup(a, g.message, preemption ? (size_t)(preemption - g.message) : strlen(g.message));
    g.pod = arena_strdup(a, pod->name);
    g.uid = arena_strdup(a, pod->uid);
    g.node = pod->node[0] ? arena_strdup(a, pod->node) : NULL;
    g.container = arena_strdup(a, g.container ? g.container : pod->training.name);
    g.attempt = pod->attempt;
    g.since_ms = pod->created_ms;
    const char *lost = condition_of(finding_object(f->nodes, g.node), "Ready", "lastTransitionTime");
    if (same_text(g.reason, "NodeLost") && lost)
        (void)clock_parse_rfc3339(lost, &g.since_ms);
    g.text = arena_printf(a, "%s%s", g.message, warnings(f, &g, events, a));
    if (strstr(g.message, "PersistentVolumeClaim"))
        g.message = arena_printf(a, g.message[strlen(g.message) - 1] == '.' ? "%s%s" : "%s.%s", g.message,
                                 unbound_claims(f, a));
    return g;
}
