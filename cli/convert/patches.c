/* patches.c - apply a TrainJob's patches of its runtime. */
#include "cli/convert/parts.h"

#include <string.h>

enum { PATCHES_MAX = 16, PATCH_STEPS_MAX = 100 };

void convert_labels(const struct json_at *from, cJSON *metadata)
{
    static const char *const KEPT[] = {"labels", "annotations"};

    for (size_t i = 0; i < ARRAY_LEN(KEPT); i++) {
        const cJSON *m = json_child(from->node, KEPT[i]);
        if (losses_is_set(m))
            convert_merge(convert_object(metadata, KEPT[i]), m);
    }
}

/* The labels and annotations of `patch` into the object's. */
static void merge_labels(struct conversion *c, const struct json_at *patch, cJSON *object)
{
    const struct json_at metadata = json_member(patch, "metadata");

    losses_members(c->losses, &metadata, "labels annotations", NULL);
    if (losses_is_set(metadata.node))
        convert_labels(&metadata, convert_object(object, "metadata"));
}

/* {metadata, spec} of pods. */
static void merge_pods(struct conversion *c, const struct json_at *patch, cJSON *template)
{
    merge_labels(c, patch, template);
    convert_merge(convert_object(template, "spec"), json_child(patch->node, "spec"));
}

/* An item of spec.replicatedJobs: {name, template: {metadata, spec: {template: {metadata, spec}}}} */
static void merge_step(struct conversion *c, const struct json_at *step, const struct runtime *rt,
                       cJSON *template)
{
    static const struct losses_field LOST[] = {{"metadata", RUNTIME_NO_JOB}, {0}};
    const char *name = json_str(step->node, "name");
    const struct json_at *pods = convert_at(c, step, "template.spec.template");

    if (!name || strcmp(name, rt->step) != 0) {
        losses_add(c->losses, step, "patches a step that is not converted");
        return;
    }
    losses_members(c->losses, step, "name template", NULL);
    losses_members(c->losses, convert_at(c, step, "template"), "spec", LOST);
    losses_members(c->losses, pods->parent, "template", NULL);
    losses_members(c->losses, pods, "metadata spec", NULL);
    merge_pods(c, pods, template);
}

static int merge_patch(struct conversion *c, const struct json_at *patch, const struct runtime *rt,
                       cJSON *template, struct err *err)
{
    const struct json_at *jobset = convert_at(c, patch, "trainingRuntimeSpec.template");
    const struct json_at *steps = convert_at(c, jobset, "spec.replicatedJobs");
    const cJSON *node;
    int i = 0;

    losses_members(c->losses, patch, "manager time trainingRuntimeSpec", NULL);
    losses_members(c->losses, jobset->parent, "template", NULL);
    losses_members(c->losses, jobset, "metadata spec", NULL);
    losses_members(c->losses, steps->parent, "replicatedJobs", NULL);
    merge_labels(c, jobset, c->job);
    if (json_expect_array(steps, PATCH_STEPS_MAX, err) < 0)
        return -1;
    cJSON_ArrayForEach(node, steps->node)
    {
        const struct json_at step = json_item(steps, node, i++);
        merge_step(c, &step, rt, template);
    }
    return 0;
}

static void merge_override(struct conversion *c, const struct json_at *override, const struct runtime *rt,
                           cJSON *template)
{
    const cJSON *targets = json_child(override->node, "targetJobs");

    losses_members(c->losses, override, "manager targetJobs metadata spec", NULL);
    if (!cJSON_GetArraySize(targets) || json_item_with(targets, "name", rt->step)) /* none: all steps */
        merge_pods(c, override, template);
    else
        losses_add(c->losses, override, "is for a step that is not converted");
}

int convert_patches(struct conversion *c, const struct json_at *spec, const struct runtime *rt,
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
