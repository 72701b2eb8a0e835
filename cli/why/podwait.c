/* podwait.c - why a pod does not start: scheduling, claims, images, mounts, its node; from its status and its events. */
#include "cli/why/podwait.h"

#include "common/clock.h"

#include <string.h>

enum { STUCK_MS = 10000, EVENTS_SHOWN = 8 };

static const char *name_of(const cJSON *object)
{
    return json_str(json_find(object, (const char *[]){"metadata", NULL}), "name");
}

/* What an event is about. */
static bool is_about(const cJSON *event, const char *kind, const char *name)
{
    const cJSON *object = json_find(event, (const char *[]){"involvedObject", NULL});

    return same_text(json_str(object, "kind"), kind) && name && same_text(json_str(object, "name"), name);
}

/* Message, beginning so, of the pod's newest Warning event of this reason; NULL: there is none. Lists are by name, not by time, and the server
 * counts repeated events up. */
static const char *warning(const struct why_facts *f, const char *pod, const char *reason, const char *begins)
{
    const char *newest = "", *message = NULL;
    const cJSON *e;

    cJSON_ArrayForEach(e, f->events)
    {
        const char *when = json_str(e, "lastTimestamp");
        when = when ? when : json_str(e, "eventTime");
        when = when ? when : "";
        const char *words = json_str(e, "message");
        if (!is_about(e, "Pod", pod) || !same_text(json_str(e, "type"), "Warning") ||
            !same_text(json_str(e, "reason"), reason) || strcmp(when, newest) < 0 || !words ||
            strncmp(words, begins, strlen(begins)) != 0)
            continue;
        newest = when;
        message = words;
    }
    return message;
}

/* All warnings about the pod, a line each. */
static const char *warnings(const struct why_facts *f, const char *pod, struct arena *a)
{
    const char *all = "";
    const cJSON *e;
    int n = 0;

    cJSON_ArrayForEach(e, f->events)
    {
        const char *message = json_str(e, "message");
        if (n < EVENTS_SHOWN && message && is_about(e, "Pod", pod) &&
            same_text(json_str(e, "type"), "Warning") && ++n)
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

/* What a container waits for that has no reason of its own: a mount, a sandbox. */
static const char *starting_problem(const struct why_facts *f, const char *pod, const char **ret_reason)
{
    static const char *const REASONS[] = {"FailedAttachVolume", "FailedMount", "FailedCreatePodSandBox",
                                          "FailedScheduling", "NodeNotReady"};

    for (size_t i = 0; i < ARRAY_LEN(REASONS); i++) {
        const char *message = warning(f, pod, REASONS[i], "");
        if (message) {
            *ret_reason = REASONS[i];
            return message;
        }
    }
    return NULL;
}

/* Why this pod waits, as reason and message; false: it just starts. */
static bool waits_for(const struct why_facts *f, const struct pod *pod, const cJSON *object,
                      const char **reason, const char **message)
{
    const bool init = pod->init.state == CONTAINER_WAITING;
    const struct pod_container *c = init ? &pod->init : &pod->training;
    const char *scheduled = condition_of(object, "PodScheduled", "reason");

    *message = NULL;
    if (pod_is_running(pod)) {
        *reason = node_is_lost(f, pod->node) ? "NodeLost" : NULL;
        *message = *reason ? condition_of(finding_object(f->nodes, pod->node), "Ready", "message") : NULL;
    } else if (pod->deletion_ms) {
        *reason = f->now_ms > pod->deletion_ms + STUCK_MS ? "PodStuckTerminating" : NULL;
    } else if (same_text(scheduled, "SchedulingGated")) {
        *reason = scheduled;
        *message = condition_of(object, "PodScheduled", "message");
    } else if (pod->unschedulable[0]) {
        *reason = "Unschedulable";
        *message = pod->unschedulable;
    } else if (c->state == CONTAINER_WAITING && c->reason[0] && strcmp(c->reason, "ContainerCreating") != 0 &&
               strcmp(c->reason, "PodInitializing") != 0) {
        *reason = c->reason;
        *message = same_text(c->reason, "ImagePullBackOff")
                       ? warning(f, pod->name, "Failed", "Failed to pull")
                       : NULL;
        *message = *message ? *message : c->message; /* which of a back-off says nothing but that */
    } else {
        *reason = NULL;
        *message = starting_problem(f, pod->name, reason);
    }
    return *reason != NULL;
}

/* Why the pod's claims have no volume, in the words of their events. */
static const char *unbound_claims(const struct why_facts *f, struct arena *a)
{
    const char *all = "";
    const cJSON *claim, *e;

    cJSON_ArrayForEach(claim, f->claims)
    {
        const char *name = name_of(claim), *message = NULL;
        const char *phase = json_str(json_find(claim, (const char *[]){"status", NULL}), "phase");
        const char *class = json_str(json_find(claim, (const char *[]){"spec", NULL}), "storageClassName");
        if (!name || same_text(phase, "Bound"))
            continue;
        cJSON_ArrayForEach(e, f->events) if (is_about(e, "PersistentVolumeClaim", name)) message =
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
    const bool init = pod->init.state == CONTAINER_WAITING;
    const char *reason, *message;
    struct finding g = FINDING_NONE;

    if (!waits_for(f, pod, object, &reason, &message))
        return g;
    g.kind = WHY_WAITING;
    g.reason = arena_strdup(a, reason);
    /* What the scheduler says of preemption tells nothing more. */
    g.message = message ? message : "";
    if (pod->beside && same_text(g.reason, pod->init.reason))
        g.message = arena_printf(a, "container %s: %s", pod->init.name, g.message);
    const char *preemption = strstr(g.message, " preemption: ");
    g.message =
        arena_strndup(a, g.message, preemption ? (size_t)(preemption - g.message) : strlen(g.message));
    g.pod = arena_strdup(a, pod->name);
    g.uid = arena_strdup(a, pod->uid);
    g.node = pod->node[0] ? arena_strdup(a, pod->node) : NULL;
    g.container = arena_strdup(a, init ? pod->init.name : pod->training.name);
    g.init = init && !pod->beside;
    g.attempt = pod->attempt;
    g.since_ms = pod->created_ms;
    const char *lost = condition_of(finding_object(f->nodes, g.node), "Ready", "lastTransitionTime");
    if (same_text(g.reason, "NodeLost") && lost)
        (void)clock_parse_rfc3339(lost, &g.since_ms);
    g.text = arena_printf(a, "%s%s", g.message, warnings(f, g.pod, a));
    if (strstr(g.text, "PersistentVolumeClaim"))
        g.message = arena_printf(a, "%s%s", g.message, unbound_claims(f, a));
    return g;
}
