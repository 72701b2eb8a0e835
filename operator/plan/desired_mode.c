/* desired_mode.c - apply debug mode or resumeSpecs to a template. Debug mode has precedence. */
#include "operator/plan/desired_mode.h"

#include "operator/plan/overlay.h"

#include <string.h>

static const struct run_instead *instead(const struct run_mode *mode, const char *type)
{
    for (int i = 0; i < mode->n; i++)
        if (strcmp(mode->items[i].type, type) == 0)
            return &mode->items[i];
    return NULL;
}

/* Those with restartPolicy Always run beside the training: they are sidecars, and stay. */
static void drop_init_containers(cJSON *spec)
{
    cJSON *list = cJSON_GetObjectItemCaseSensitive(spec, "initContainers");
    cJSON *next;

    for (cJSON *c = list ? list->child : NULL; c; c = next) {
        const char *policy = json_str(c, "restartPolicy");
        next = c->next;
        if (!policy || strcmp(policy, "Always") != 0)
            cJSON_Delete(cJSON_DetachItemViaPointer(list, c));
    }
    if (cJSON_GetArraySize(list) == 0)
        cJSON_DeleteItemFromObjectCaseSensitive(spec, "initContainers");
}

static void set_words(cJSON *container, const char *key, const char *const *words, int n)
{
    overlay_set(container, key, cJSON_CreateStringArray(words, n));
}

void desired_mode_apply(const struct planner *p, const struct slot *s, cJSON *spec, cJSON *container)
{
    static const char *const SLEEP[] = {"sleep", "inf"};
    bool debug = p->spec->debug.enabled;
    const struct run_instead *r = NULL;

    if (debug)
        r = instead(&p->spec->debug, s->spec->type);
    else if (p->st.resume_count > 0)
        r = instead(&p->spec->resume, s->spec->type);
    if (r && r->skip_init)
        drop_init_containers(spec);
    if (debug) {
        bool own = r && r->n_command > 0;
        set_words(container, "command", own ? r->command : SLEEP, own ? r->n_command : 2);
        cJSON_DeleteItemFromObjectCaseSensitive(container, "args");
        return;
    }
    if (r && r->has_command)
        set_words(container, "command", r->command, r->n_command);
    if (r && r->has_args)
        set_words(container, "args", r->args, r->n_args);
}
