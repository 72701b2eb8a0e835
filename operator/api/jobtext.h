/* jobtext.h - a PyTorchTrainingJob in the cache: its names, and the rest as JSON text. That needs a few KiB.
 * A decoded job needs about ten times as much, so each reconcile decodes it and frees it.
 *
 * Ownership: one block of memory, freed by free(). Strings point into it.
 * Errors:    ERR_INVALID when the object has no usable metadata, or its status is larger than the operator
 *            can have written.
 */
#ifndef TK_OPERATOR_API_JOBTEXT_H
#define TK_OPERATOR_API_JOBTEXT_H

#include "operator/api/trainjob.h"

enum {
    /* Limit of the spec, measured as the API server encodes it (<, >, &, U+2028 and U+2029 need six bytes),
     * so that objects created from it stay within limits when they are read back. kubectl apply has the same
     * limit. */
    JOBTEXT_SPEC_BYTES = 256 << 10,
    /* Limit of the status: 1,024 replicas take 300 KiB, all messages together 60 KiB,
     * others' conditions 64 KiB. */
    JOBTEXT_STATUS_BYTES = 512 << 10,
    JOBTEXT_POLICY_BYTES = 4 << 10, /* limit of runPolicy in a spec that is too large to store */
};

struct jobtext {
    const char *unreadable; /* why only the names of skim.h are known; "": the job was read */
    const char *ns, *name, *uid, *resource_version;
    int64_t generation;
    bool deleting;
    bool queued; /* it has LABEL_QUEUE */
    enum job_phase phase;
    const char *json; /* spec, status, and the members of metadata that are used */
    size_t json_len;
    bool too_large; /* the spec is over the limit: it counts as invalid, and only runPolicy is stored */
};

/* `object` is borrowed for the call. unreadable: NULL, or why it has only names. */
struct jobtext *jobtext_new(const cJSON *object, const struct err *unreadable, struct err *err) MUST_CHECK;

/* Decode the job. It borrows nothing from the text. */
struct trainjob *jobtext_decode(const struct jobtext *t, struct err *err) MUST_CHECK;

#endif
