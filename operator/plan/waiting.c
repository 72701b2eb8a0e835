/* waiting.c - explain why a pod does not start: claims, images, containers, scheduling. */
#include "operator/plan/waiting.h"

#include <string.h>

enum { CLAIMS_SHOWN = 3, CLAIM_BYTES = 253 };

static bool one_of(const char *reason, const char *const *words, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(words[i], reason) == 0)
            return true;
    return false;
}

static bool image_problem(const char *reason)
{
    static const char *const REASONS[] = {"ErrImagePull", "ImagePullBackOff", "InvalidImageName",
                                          "ErrImageNeverPull", "RegistryUnavailable"};

    return one_of(reason, REASONS, ARRAY_LEN(REASONS));
}

static bool start_problem(const char *reason)
{
    static const char *const REASONS[] = {"CreateContainerConfigError", "CreateContainerError",
                                          "RunContainerError"};

    return one_of(reason, REASONS, ARRAY_LEN(REASONS));
}

/* The claims of the slot's template, "a, b, c, ..."; *n is how many there are. */
static const char *claims(struct planner *p, const struct slot *s, int *n)
{
    static const char *const VOLUMES[] = {"spec", "volumes", NULL};
    const char *list = "";
    const cJSON *volume;

    *n = 0;
    cJSON_ArrayForEach(volume, json_find(s->spec->template, VOLUMES))
    {
        const char *name =
            json_str(json_find(volume, (const char *[]){"persistentVolumeClaim", NULL}), "claimName");
        if (!name)
            continue;
        if (*n < CLAIMS_SHOWN)
            list = arena_printf(p->a, "%s%s%.*s", list, *n ? ", " : "", CLAIM_BYTES, name);
        ++*n;
    }
    return *n > CLAIMS_SHOWN ? arena_printf(p->a, "%s, ...", list) : list;
}

/* The scheduler names a claim that is missing: persistentvolumeclaim "data" not found. Of claims that are there and have no
 * volume it only says that there are such: pod has unbound immediate PersistentVolumeClaims. */
static struct waiting unschedulable(struct planner *p, const struct slot *s)
{
    static const char NAMED[] = "persistentvolumeclaim \"";
    const char *text = s->pod->unschedulable;
    const char *name = strstr(text, NAMED);
    struct waiting w = {"Unschedulable", NULL, text};
    int n;

    if (name) {
        name += strlen(NAMED);
        size_t len = strcspn(name, "\"");
        bool missing = strncmp(name + len, "\" not found", strlen("\" not found")) == 0;
        w.reason = missing ? "ClaimNotFound" : "ClaimNotReady";
        w.subject = arena_strndup(p->a, name, len < CLAIM_BYTES ? len : CLAIM_BYTES);
    } else if (strstr(text, "unbound immediate PersistentVolumeClaims")) {
        const char *all = claims(p, s, &n);
        w.reason = "ClaimNotBound";
        w.subject = n == 1 ? all : NULL;
        w.message =
            arena_printf(p->a, "no volume is bound to its claim%s %s: %s", n == 1 ? "" : "s", all, text);
    }
    return w;
}

struct waiting waiting_of(struct planner *p, const struct slot *s)
{
    static const struct waiting NOTHING = {NULL, NULL, ""};
    const struct pod *pod = s->pod;

    if (!pod)
        return NOTHING;
    if (pod->unschedulable[0])
        return unschedulable(p, s);
    bool init = pod->init.state == CONTAINER_WAITING;
    const struct pod_container *c = init ? &pod->init : &pod->training;
    bool image = image_problem(c->reason);
    if (c->state != CONTAINER_WAITING || (!image && !start_problem(c->reason)))
        return NOTHING;
    return (struct waiting){
        .reason = image ? "ImagePullFailed" : c->reason,
        .subject = init ? c->name : NULL,
        .message = arena_printf(p->a, "%scontainer %s: %s", init && !pod->beside ? "init " : "", c->name,
                                c->message[0] ? c->message : c->reason),
    };
}
