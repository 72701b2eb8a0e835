/* podwaiting.c - explain why a pod does not start or end: gates, PVCs, scheduling, images, containers,
 * finalizers. */
#include "operator/plan/podwaiting.h"

#include "operator/plan/rootcause.h"

#include <string.h>

enum { CLAIMS_SHOWN = 3, CLAIM_BYTES = 253, STARTING_MS = 30000, STUCK_MS = 30000 };

static const struct waiting NOTHING = {.message = "", .words = ""};

/* Our reason for the kubelet's message about a container that it cannot start. NULL: another message. */
static const char *start_problem(const char *said)
{
    static const char IMAGE[] = "ImagePullFailed";
    static const char *const WORDS[][2] = {
        {"ErrImagePull", IMAGE},
        {"ImagePullBackOff", IMAGE},
        {"InvalidImageName", IMAGE},
        {"ErrImageNeverPull", IMAGE},
        {"RegistryUnavailable", IMAGE},
        {"CreateContainerConfigError", "CreateContainerConfigError"},
        {"CreateContainerError", "CreateContainerError"},
        {"RunContainerError", "RunContainerError"},
    };

    for (size_t i = 0; i < ARRAY_LEN(WORDS); i++)
        if (strcmp(WORDS[i][0], said) == 0)
            return WORDS[i][1];
    return NULL;
}

/* `w`, or nothing while the pod may still be starting normally. */
static struct waiting if_late(struct waiting w, int64_t since_ms, int64_t now_ms)
{
    if (since_ms && now_ms >= since_ms + STARTING_MS)
        return w;
    return (struct waiting){.message = "", .words = "", .due_ms = since_ms ? since_ms + STARTING_MS : 0};
}

/* The PVC of a volume; for an ephemeral volume also the storage class of its template. NULL: none. */
static const char *claim_of(const cJSON *volume, const struct pod *pod, const char **ret_class,
                            struct arena *a)
{
    static const char *const TEMPLATE[] = {"ephemeral", "volumeClaimTemplate", "spec", NULL};
    const cJSON *template = json_find(volume, TEMPLATE);
    const char *name = json_str(volume, "name");
    const char *class = json_str(template, "storageClassName");

    *ret_class = "";
    if (!template || !name)
        return json_str(json_child(volume, "persistentVolumeClaim"), "claimName");
    if (class)
        *ret_class = arena_printf(a, " (storage class %.*s)", CLAIM_BYTES, class);
    return arena_printf(a, "%s-%.*s", pod->name, CLAIM_BYTES, name);
}

/* The pod's PVCs, "a, b, c, ..."; *only: the name if there is exactly one, else NULL. */
static const char *claims(const struct pod *pod, const cJSON *object, const char **only, struct arena *a)
{
    static const char *const VOLUMES[] = {"spec", "volumes", NULL};
    const char *list = "", *class;
    const cJSON *volume;
    int n = 0;

    *only = NULL;
    cJSON_ArrayForEach(volume, json_find(object, VOLUMES))
    {
        const char *name = claim_of(volume, pod, &class, a);
        if (!name)
            continue;
        if (n < CLAIMS_SHOWN)
            list = arena_printf(a, "%s%s%.*s%s", list, n ? ", " : "", CLAIM_BYTES, name, class);
        *only = n++ ? NULL : name;
    }
    return n > CLAIMS_SHOWN ? arena_printf(a, "%s, ...", list) : list;
}

/* The scheduler names a missing PVC: persistentvolumeclaim "data" not found. It does not name PVCs without a
 * volume: pod has unbound immediate PersistentVolumeClaims. */
static struct waiting unschedulable(const struct pod *pod, const cJSON *object, struct arena *a)
{
    static const char NAMED[] = "persistentvolumeclaim \"";
    const char *text = pod->unplaced_by;
    const char *name = strstr(text, NAMED);
    struct waiting w = {.reason = "Unschedulable", .message = text, .words = text};

    if (name) {
        name += strlen(NAMED);
        size_t len = strcspn(name, "\"");
        bool missing = strncmp(name + len, "\" not found", strlen("\" not found")) == 0;
        w.reason = missing ? "ClaimNotFound" : "ClaimNotReady";
        w.subject = arena_strndup(a, name, len < CLAIM_BYTES ? len : CLAIM_BYTES);
    } else if (strstr(text, "unbound immediate PersistentVolumeClaims")) {
        const char *all = claims(pod, object, &w.subject, a);
        w.reason = "ClaimNotBound";
        w.message =
            arena_printf(a, "no volume is bound to its PVC%s %s: %s", w.subject ? "" : "s", all, text);
    }
    return w;
}

/* A pod without a node. */
static struct waiting unplaced(const struct pod *pod, const cJSON *object, int64_t now_ms, struct arena *a)
{
    const char *by = pod->unplaced_by;
    struct waiting w = {.words = "", .subject = by};

    switch (pod->unplaced) {
    case UNPLACED_NO:
        return NOTHING;
    case UNPLACED_UNSCHEDULABLE:
        return unschedulable(pod, object, a);
    case UNPLACED_GATE:
        w.reason = "SchedulingGated";
        w.message = arena_printf(a, "scheduling gate %s holds it", by);
        return w;
    case UNPLACED_CLAIM:
        w.reason = "ResourceClaimNotCreated";
        w.message = arena_printf(a, "no ResourceClaim has been created from ResourceClaimTemplate %s", by);
        break;
    case UNPLACED_SCHEDULER:
        w.reason = "NotScheduled";
        w.message = arena_printf(a, "scheduler %s has not processed it yet", by);
        break;
    }
    return if_late(w, pod->created_ms, now_ms);
}

static struct waiting about(const struct pod *pod, const struct pod_container *c, const char *reason,
                            const char *words, struct arena *a)
{
    const bool init = c == &pod->init;

    return (struct waiting){
        .reason = reason,
        .subject = init ? c->name : NULL,
        .message = arena_printf(a, "%scontainer %s: %s", init && !pod->beside ? "init " : "", c->name, words),
        .words = words,
        .container = c,
    };
}

/* The container that the others wait for: it cannot start, keeps failing, or takes long. */
static struct waiting held_by_container(const struct pod *pod, const cJSON *object, int64_t now_ms,
                                        struct arena *a)
{
    const bool init = pod->init.state != CONTAINER_NONE;
    const struct pod_container *c = init ? &pod->init : &pod->training;
    const char *words = c->message[0] ? c->message : c->reason;
    const char *problem = c->state == CONTAINER_WAITING ? start_problem(c->reason) : NULL;

    if (problem)
        return about(pod, c, problem, words, a);
    if (init && pod->crashed) {
        words = rootcause_line(c->message, "", a);
        words = arena_printf(a, "it ended with exit code %d and is being restarted%s%s", c->exit_code,
                             words[0] ? ": " : "", words);
        return about(pod, c, "CrashLoopBackOff", words, a);
    }
    if (c->state == CONTAINER_RUNNING && pod->sidecar)
        return if_late(about(pod, c, "SidecarNotStarted",
                             "it runs, but its startup probe or postStart hook has not succeeded", a),
                       pod->since_ms, now_ms);
    if (c->state == CONTAINER_RUNNING)
        return if_late(
            about(pod, c, "InitContainerRunning", "it runs, and the training begins when it has ended", a),
            pod->since_ms, now_ms);
    const char *only, *pvcs = claims(pod, object, &only, a);
    words = arena_printf(a, "it is not made yet: its image, a volume%s%s%s or the pod's network takes long",
                         pvcs[0] ? " (PVC " : "", pvcs, pvcs[0] ? ")" : "");
    return if_late(about(pod, c, "ContainerCreating", words, a), pod->since_ms, now_ms);
}

struct waiting waiting_of(const struct pod *pod, const cJSON *object, int64_t now_ms, struct arena *a)
{
    if (pod->deletion_ms || pod_ended(pod) || pod_is_running(pod) || pod->phase == POD_PHASE_UNKNOWN)
        return NOTHING;
    if (pod->node[0] && !pod->unplaced)
        return held_by_container(pod, object, now_ms, a);
    return unplaced(pod, object, now_ms, a);
}

struct waiting waiting_for_end(const struct pod *pod, int64_t now_ms, struct arena *a)
{
    struct waiting w = NOTHING;
    const char *node = pod->node[0] ? pod->node : "(none)";

    if (pod->deletion_ms + STUCK_MS > now_ms) {
        w.due_ms = pod->deletion_ms + STUCK_MS;
        return w;
    }
    w.reason = "PodStuckTerminating";
    w.message = arena_printf(a, "pod %s on node %s is still there after its grace period", pod->name, node);
    /* With a grace period of 0 the API server does not wait for the kubelet, so the finalizer is the reason. */
    if (pod->forced && pod->finalizer[0]) {
        w.reason = "PodHeldByFinalizer";
        w.subject = pod->finalizer;
        w.message = arena_printf(a, "pod %s was deleted and stays until finalizer %s is removed", pod->name,
                                 pod->finalizer);
    }
    return w;
}
