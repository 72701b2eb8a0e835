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

/* torchrun takes its number of restarts from the environment if the command has none. */
static void take_restarts(cJSON *torchrun, const cJSON *container)
{
    const char *text = json_str(convert_variable(container, "PET_MAX_RESTARTS"), "value");
    int64_t n;

    if (text && !json_child(torchrun, "maxRestarts") && sv_i64(sv_from(text), 0, INT32_MAX, &n))
        cJSON_AddNumberToObject(torchrun, "maxRestarts", (double)n);
}

/* Move the torchrun commands of all types into `spec`, a copy of the result's. NULL: done; else the reason why not. */
static const char *move_commands(struct conversion *c, const struct json_at *at, cJSON *spec)
{
    cleanup_json cJSON *base = cJSON_Duplicate(json_child(spec, "torchrunConfig"), true);
    cleanup_json cJSON *first = NULL;
    struct buf none = {0};
    struct losses *losses = c->losses, ignored = {.text = &none, .place = "", .subject = ""};
    cJSON *result = c->spec, *r;
    bool same = true;

    c->spec = spec;
    cJSON_ReplaceItemInObjectCaseSensitive(base, "enabled", cJSON_CreateTrue());
    cJSON_ArrayForEach(r, json_child(spec, "replicaSpecs"))
    {
        json_set(spec, "torchrunConfig", cJSON_Duplicate(base, true));
        c->losses = first ? &ignored : losses; /* the same of each */
        convert_torchrun(c, at, convert_container(r));
        cJSON *config = json_child(spec, "torchrunConfig");
        take_restarts(config, convert_container(r));
        same &= !first || cJSON_Compare(first, config, true);
        first = first ? first : cJSON_Duplicate(config, true);
    }
    c->losses = losses;
    c->spec = result;
    return same ? why_not_backend(first) : "the torchrun options of its types differ";
}

/* Why the launcher cannot run the job; NULL: it can, and `spec`, a copy of the result's, is for it. */
static const char *why_not(struct conversion *c, struct losses *lost, cJSON *spec)
{
    const cJSON *torchrun = json_child(spec, "torchrunConfig");
    struct losses *losses = c->losses;

    if (cJSON_IsTrue(json_child(torchrun, "enabled")))
        return why_not_backend(torchrun);
    const char *why = why_not_command(json_child(spec, "replicaSpecs"));
    c->losses = lost;
    if (!why)
        why = move_commands(c, &c->from, spec);
    c->losses = losses;
    return why;
}

void convert_launcher(struct conversion *c)
{
    cleanup_buf struct buf text = BUF_INIT(LOSSES_MAX);
    struct losses lost = *c->losses;
    cJSON *spec = cJSON_Duplicate(c->spec, true);

    lost.text = &text;
    const char *why = why_not(c, &lost, spec);
    if (c->torchkeeper && !why) {
        cJSON_AddStringToObject(json_child(spec, "torchrunConfig"), "launcher", "Torchkeeper");
        cJSON_ReplaceItemInObjectCaseSensitive(c->job, "spec", spec);
        c->spec = spec;
        c->losses->lost = lost.lost;
        buf_puts(c->losses->text, buf_str(&text), NULL);
        return;
    }
    cJSON_Delete(spec);
    if (c->torchkeeper)
        losses_add(c->losses, &c->from, "launcher: Torchkeeper is left out: %s", why);
    else
        losses_note(
            c->losses, &c->from, "the job shows no progress and nothing ends its hangs%s%s",
            why ? ", since the operator's launcher cannot run it: "
                : ": --launcher Torchkeeper gives progress; then set runPolicy.progressTimeoutSeconds "
                  "to end hangs",
            why ? why : "");
}
