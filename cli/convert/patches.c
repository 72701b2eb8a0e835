/* patches.c - apply a TrainJob's patches of its runtime. */
#include "cli/convert/runtime_parts.h"

#include <string.h>

enum { PATCHES_MAX = 16, PATCH_STEPS_MAX = 100 };

void convert_labels(const struct json_at *from, cJSON *metadata)
{
    static const char *const KEPT[] = {"labels", "annotations"};

    for (size_t i = 0; i < ARRAY_LEN(KEPT); i++) {
        const struct json_at m = json_member(from, KEPT[i]);
        if (losses_is_set(m.node))
            convert_merge(convert_object(metadata, KEPT[i]), m.node);
    }
}

static void merge_labels(struct conversion *c, const struct json_at *metadata, cJSON *to)
{
    static const struct losses_field FIELDS[] = {{"labels", NULL}, {"annotations", NULL}, {0}};

    losses_members(c->losses, metadata, FIELDS);
    convert_labels(metadata, to);
}

/* {metadata, spec} of pods. */
static void merge_pods(struct conversion *c, const struct json_at *patch, cJSON *template)
{
    const struct json_at metadata = json_member(patch, "metadata");
    const struct json_at spec = json_member(patch, "spec");

    if (losses_is_set(metadata.node))
        merge_labels(c, &metadata, convert_object(template, "metadata"));
    convert_merge(convert_object(template, "spec"), spec.node);
}

/* An item of spec.replicatedJobs: {name, template: {metadata, spec: {template: {metadata, spec}}}} */
static void merge_step(struct conversion *c, const struct json_at *step, const struct runtime_parts *rt,
                       cJSON *template)
{
    static const struct losses_field STEP[] = {{"name", NULL}, {"template", NULL}, {0}};
    static const struct losses_field JOB[] = {{"metadata", RUNTIME_NO_JOB}, {"spec", NULL}, {0}};
    static const struct losses_field JOB_SPEC[] = {{"template", NULL}, {0}};
    const char *name = json_str(step->node, "name");
    const struct json_at job = json_member(step, "template");
    const struct json_at spec = json_member(&job, "spec");
    const struct json_at pods = json_member(&spec, "template");

    if (!name || strcmp(name, rt->step) != 0) {
        losses_add(c->losses, step, "patches a step that is not converted");
        return;
    }
    losses_members(c->losses, step, STEP);
    losses_members(c->losses, &job, JOB);
    losses_members(c->losses, &spec, JOB_SPEC);
    losses_members(c->losses, &pods, LOSSES_METADATA_AND_SPEC);
    merge_pods(c, &pods, template);
}

static int merge_patch(struct conversion *c, const struct json_at *patch, const struct runtime_parts *rt,
                       cJSON *template, struct err *err)
{
    static const struct losses_field PATCH[] = {
        {"manager", NULL}, {"time", NULL}, {"trainingRuntimeSpec", NULL}, {0}};
    static const struct losses_field RUNTIME[] = {{"template", NULL}, {0}};
    static const struct losses_field JOBSET[] = {{"replicatedJobs", NULL}, {0}};
    const struct json_at runtime = json_member(patch, "trainingRuntimeSpec");
    const struct json_at jobset = json_member(&runtime, "template");
    const struct json_at metadata = json_member(&jobset, "metadata");
    const struct json_at spec = json_member(&jobset, "spec");
    const struct json_at steps = json_member(&spec, "replicatedJobs");
    const cJSON *node;
    int i = 0;

    losses_members(c->losses, patch, PATCH);
    losses_members(c->losses, &runtime, RUNTIME);
    losses_members(c->losses, &jobset, LOSSES_METADATA_AND_SPEC);
    losses_members(c->losses, &spec, JOBSET);
    if (losses_is_set(metadata.node))
        merge_labels(c, &metadata, c->metadata);
    if (json_expect_array(&steps, PATCH_STEPS_MAX, err) < 0)
        return -1;
    cJSON_ArrayForEach(node, steps.node)
    {
        const struct json_at step = json_item(&steps, node, i++);
        merge_step(c, &step, rt, template);
    }
    return 0;
}

/* An override without targets is for all steps. */
static bool is_for(const cJSON *override, const char *step)
{
    const cJSON *targets = json_child(override, "targetJobs");
    const cJSON *t;

    cJSON_ArrayForEach(t, targets)
    {
        const char *name = json_str(t, "name");
        if (name && strcmp(name, step) == 0)
            return true;
    }
    return !cJSON_GetArraySize(targets);
}

static void merge_override(struct conversion *c, const struct json_at *override,
                           const struct runtime_parts *rt, cJSON *template)
{
    static const struct losses_field FIELDS[] = {
        {"manager", NULL}, {"targetJobs", NULL}, {"metadata", NULL}, {"spec", NULL}, {0}};

    losses_members(c->losses, override, FIELDS);
    if (is_for(override->node, rt->step))
        merge_pods(c, override, template);
    else
        losses_add(c->losses, override, "is for a step that is not converted");
}

int convert_patches(struct conversion *c, const struct json_at *spec, const struct runtime_parts *rt,
                    cJSON *template, struct err *err)
{
    const struct json_at patches = json_member(spec, "runtimePatches");
    const struct json_at overrides = json_member(spec, "podTemplateOverrides");
    const cJSON *node;
    int i = 0;

    if (json_expect_array(&patches, PATCHES_MAX, err) < 0 ||
        json_expect_array(&overrides, PATCHES_MAX, err) < 0)
        return -1;
    cJSON_ArrayForEach(node, overrides.node)
    {
        const struct json_at override = json_item(&overrides, node, i++);
        merge_override(c, &override, rt, template);
    }
    i = 0;
    cJSON_ArrayForEach(node, patches.node)
    {
        const struct json_at patch = json_item(&patches, node, i++);
        if (merge_patch(c, &patch, rt, template, err) < 0)
            return -1;
    }
    return 0;
}
