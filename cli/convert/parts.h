/* parts.h - one conversion under way; shared by the files of convert/ only.
 *
 * Ownership: the result lives in `job` until convert_job hands it over; the rest is borrowed.
 */
#ifndef TK_CLI_CONVERT_PARTS_H
#define TK_CLI_CONVERT_PARTS_H

#include "cli/convert/convert.h"
#include "operator/api/trainjob.h"

struct conversion {
    const cJSON *object; /* the manifest */
    struct json_at from; /* its spec */
    const cJSON *entries;
    struct losses *losses;
    cJSON *job; /* the result; its parts: */
    cJSON *metadata, *spec;
    cJSON *known_runtime; /* one that was not among the entries; freed by convert_job */
    struct arena *arena;
    bool torchkeeper; /* the operator's launcher is wanted */
};

/* The two kinds. */
int convert_pytorchjob(struct conversion *c, struct err *err) MUST_CHECK;
int convert_trainjob(struct conversion *c, struct err *err) MUST_CHECK;

/* A PyTorchJob's elasticPolicy; after replicaSpecs and procPerNode have been made. */
int convert_elastic(struct conversion *c, const struct json_at *policy, struct err *err) MUST_CHECK;

/* The training container of a member of replicaSpecs. */
cJSON *convert_container(const cJSON *replica);

/* Where torchrun's options begin in command and args of a container, as one list; -1: it runs no torchrun, or
 * torch.distributed.launch without --use_env. */
int convert_torchrun_at(const cJSON *container);

bool convert_has_word(const cJSON *container, const char *word);

/* Move the torchrun command of a container into spec.torchrunConfig and the container's args. `at`: where
 * the manifest has the container. */
void convert_torchrun(struct conversion *c, const struct json_at *at, cJSON *container);

/* Add a word to extraOptions. */
void convert_add_extra(cJSON *torchrun, const char *word);

/* With c->torchkeeper the operator's launcher runs the job, or the reason why not is lost; else a note names it. After replicaSpecs and
 * torchrunConfig have been made. */
void convert_launcher(struct conversion *c);

/* What a TrainJob takes of its runtime. Places point into the struct, which must not be copied, or live in the arena. */
struct runtime {
    struct json_at spec, step_at; /* of the runtime; the step that trains */
    const struct json_at *torch, *jobset, *pod_template;
    const char *step; /* its name */
    int64_t nodes;
    const char *subject; /* of the losses before: the TrainJob */
};

/* Why the labels and annotations of the runtime's Job are lost. */
#define RUNTIME_NO_JOB "there is no Job between the job and its pods"

/* Read the runtime that a runtimeRef names: among the entries, or the well-known torch-distributed. From here to runtime_end losses are
 * the runtime's. Its policies go into spec.runPolicy, its labels into metadata. */
int runtime_read(struct conversion *c, const struct json_at *ref, struct runtime *ret,
                 struct err *err) MUST_CHECK;

/* Give the pods the claims that JobSet would have made. */
void runtime_claims(struct conversion *c, const struct runtime *rt, cJSON *pod_spec);
void runtime_end(struct conversion *c, const struct runtime *rt);

/* spec.runtimePatches and, of earlier versions, spec.podTemplateOverrides, into our pod template. */
int convert_patches(struct conversion *c, const struct json_at *spec, const struct runtime *rt,
                    cJSON *template, struct err *err) MUST_CHECK;

/* Merge a pod template's or pod spec's patch as the API server's strategic merge does: containers, volumes, variables and the
 * like by name, objects by member, other lists as a whole. */
void convert_merge(cJSON *to, const cJSON *patch);

/* Merge the labels and annotations of `from` into the metadata. */
void convert_labels(const struct json_at *from, cJSON *metadata);

/* Report where the result has a name that Kubeflow gives a pod, and that no pod has here. */
void convert_peers(struct conversion *c);

/* The place at the end of a path of names, "template.spec"; it lives in the arena. */
const struct json_at *convert_at(struct conversion *c, const struct json_at *from, const char *path);

/* Return the member; an absent one is added as an empty object. */
cJSON *convert_object(cJSON *parent, const char *key);

/* Copy a node that is set, as the member `key`. */
void convert_copy(cJSON *to, const char *key, const cJSON *from);

/* losses_members, and copy the members with '=' into parent's member `key`, or with NULL into parent itself. */
void convert_members(struct conversion *c, const struct json_at *from, const char *known,
                     const struct losses_field *lost, cJSON *parent, const char *key);

/* How many processes a pod has: a number, or a word. *ret is unchanged where it is not set. */
int convert_procs(struct conversion *c, const struct json_at *at, const char *key, const char **ret,
                  struct err *err) MUST_CHECK;

/* torchrunConfig of a job whose programs start torchrun themselves. */
void convert_add_torchrun(struct conversion *c, const char *procs);

/* suspend and managedBy, which Kubeflow's own controller has as `manager`. */
int convert_control(struct conversion *c, const struct json_at *from, const char *manager,
                    struct err *err) MUST_CHECK;

/* The variable in a container's env; NULL: there is none. */
cJSON *convert_variable(const cJSON *container, const char *name);

/* Add the variable to a container, unless it is there. */
void convert_add_variable(cJSON *container, const char *name, const char *value);

/* A pod template of the manifest as ours: labels and annotations, and the spec without restartPolicy. */
cJSON *convert_template(struct conversion *c, const struct json_at *template);

#endif
