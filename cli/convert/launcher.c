/* launcher.c - let the operator's launcher run a converted job: it reports progress and ends hangs. */
#include "cli/convert/parts.h"

#include "common/sv.h"

#include <string.h>

enum { LOSSES_MAX = 64 << 10 };

cJSON *convert_container(const cJSON *replica)
{
    return (cJSON *)(uintptr_t)trainjob_training_container(
        json_find(replica, (const char *[]){"template", "spec", NULL}));
}

static const char *why_not_command(const cJSON *replicas)
{
    const cJSON *r = replicas ? replicas->child : NULL;

    if (!r)
        return "it has no pods";
    const bool several = json_i64(r, "replicas", 1) > 1 || r->next;
    cJSON_ArrayForEach(r, replicas)
    {
        const cJSON *container = convert_container(r);
        if (convert_torchrun_at(container) < 0)
            return convert_has_word(container, "torch.distributed.launch")
                       ? "torch.distributed.launch is torchrun only with --use_env before the script"
                       : "the command of a container is not torchrun";
        if (several && convert_has_word(container, "--standalone"))
            return "with --standalone each pod trains for itself";
    }
    return NULL;
}

static const char *why_not_backend(const cJSON *torchrun)
{
    const char *backend = json_str(torchrun, "rdzvBackend");

    return !backend || strcmp(backend, "c10d") == 0 || strcmp(backend, "static") == 0
               ? NULL
               : "the pods meet in a server of their own";
}

/* Replace spec.torchrunConfig by a copy. */
static void set_torchrun(cJSON *spec, const cJSON *config)
{
    cJSON *copy = cJSON_Duplicate(config, true);

    cJSON_DeleteItemFromObjectCaseSensitive(spec, "torchrunConfig");
    cJSON_AddItemToObject(spec, "torchrunConfig", copy);
}

/* torchrun takes its number of restarts from the environment if the command has none. */
static void take_restarts(cJSON *torchrun, const cJSON *container)
{
    const char *text = json_str(convert_variable(container, "PET_MAX_RESTARTS"), "value");
    int64_t n;

    if (text && !cJSON_GetObjectItemCaseSensitive(torchrun, "maxRestarts") &&
        sv_i64(sv_from(text), 0, INT32_MAX, &n))
        cJSON_AddNumberToObject(torchrun, "maxRestarts", (double)n);
}

/* Move the torchrun commands of all types into `spec`, a copy of the result's. NULL: done; else the reason why not. */
static const char *move_commands(struct conversion *c, const struct json_at *at, cJSON *spec)
{
    cleanup_json cJSON *base =
        cJSON_Duplicate(cJSON_GetObjectItemCaseSensitive(spec, "torchrunConfig"), true);
    cleanup_json cJSON *first = NULL;
    cleanup_buf struct buf unused = BUF_INIT(LOSSES_MAX);
    struct losses *losses = c->losses, ignored = {.text = &unused, .place = "", .subject = ""};
    cJSON *result = c->spec, *r;
    bool same = true;

    c->spec = spec;
    cJSON_ReplaceItemInObjectCaseSensitive(base, "enabled", cJSON_CreateTrue());
    cJSON_ArrayForEach(r, cJSON_GetObjectItemCaseSensitive(spec, "replicaSpecs"))
    {
        set_torchrun(spec, base);
        c->losses = first ? &ignored : losses; /* the same of each */
        convert_torchrun(c, at, convert_container(r));
        cJSON *config = cJSON_GetObjectItemCaseSensitive(spec, "torchrunConfig");
        take_restarts(config, convert_container(r));
        same &= !first || cJSON_Compare(first, config, true);
        first = first ? first : cJSON_Duplicate(config, true);
    }
    c->losses = losses;
    c->spec = result;
    return same ? why_not_backend(first) : "the torchrun options of its types differ";
}

/* Why the launcher cannot run the job; NULL: it can, and *ret is the spec for it, with what is lost in `text`. */
static const char *why_not(struct conversion *c, const struct json_at *at, struct losses *lost, cJSON **ret)
{
    const cJSON *torchrun = cJSON_GetObjectItemCaseSensitive(c->spec, "torchrunConfig");
    struct losses *losses = c->losses;

    *ret = cJSON_Duplicate(c->spec, true);
    if (cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(torchrun, "enabled")))
        return why_not_backend(torchrun);
    const char *why = why_not_command(cJSON_GetObjectItemCaseSensitive(c->spec, "replicaSpecs"));
    c->losses = lost;
    if (!why)
        why = move_commands(c, at, *ret);
    c->losses = losses;
    return why;
}

void convert_launcher(struct conversion *c)
{
    const struct json_at at = convert_top(c->root, "spec");
    cleanup_buf struct buf text = BUF_INIT(LOSSES_MAX);
    struct losses lost = *c->losses;
    cJSON *spec;
    struct err full;

    lost.text = &text;
    const char *why = why_not(c, &at, &lost, &spec);
    if (c->torchkeeper && !why) {
        cJSON_AddStringToObject(cJSON_GetObjectItemCaseSensitive(spec, "torchrunConfig"), "launcher",
                                "Torchkeeper");
        cJSON_ReplaceItemInObjectCaseSensitive(c->job, "spec", spec);
        c->spec = spec;
        c->losses->lost = lost.lost;
        (void)buf_puts(c->losses->text, buf_str(&text), &full);
        return;
    }
    cJSON_Delete(spec);
    if (c->torchkeeper)
        losses_add(c->losses, &at, "launcher: Torchkeeper is left out: %s", why);
    else
        losses_note(c->losses, &at, "the job shows no progress and has no limit for hangs: %s%s",
                    why ? "the operator's launcher, which both need, cannot run it: "
                        : "--launcher Torchkeeper gives progress; then set runPolicy.progressTimeoutSeconds "
                          "to end hangs",
                    why ? why : "");
}
