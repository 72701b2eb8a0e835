/* runtime_parts.h - what a TrainJob takes of its runtime, and the patches of it; for convert/trainjob.c.
 *
 * Ownership: borrowed; places point into the struct, which must not be copied.
 */
#ifndef TK_CLI_CONVERT_RUNTIME_PARTS_H
#define TK_CLI_CONVERT_RUNTIME_PARTS_H

#include "cli/convert/parts.h"

struct runtime_parts {
    struct json_at root, spec, policy, torch;
    struct json_at template, jobset, steps, step_at, job_template,
        job; /* down to the Job of the step that trains */
    struct json_at pod_template;
    const char *step; /* its name */
    int64_t nodes;
    const char *subject; /* of the losses before: the TrainJob */
};

/* Why the labels and annotations of the runtime's Job are lost. */
#define RUNTIME_NO_JOB "there is no Job between the job and its pods"

/* From here to runtime_end losses are the runtime's. Its policies go into spec.runPolicy, its labels into metadata. */
int runtime_read(struct conversion *c, const cJSON *runtime, struct runtime_parts *ret,
                 struct err *err) MUST_CHECK;

/* Give the pods the claims that JobSet would have made. */
void runtime_claims(struct conversion *c, const struct runtime_parts *rt, cJSON *pod_spec);
void runtime_end(struct conversion *c, const struct runtime_parts *rt);

/* spec.runtimePatches and, of earlier versions, spec.podTemplateOverrides, into our pod template. */
int convert_patches(struct conversion *c, const struct json_at *spec, const struct runtime_parts *rt,
                    cJSON *template, struct err *err) MUST_CHECK;

#endif
