/* jobtext.h - a PyTorchTrainingJob at rest: the names, and the JSON as text. A few KiB, where the decoded job takes
 * about ten times that; it is decoded when it is due, and let go after the pass.
 *
 * Ownership: one block of memory, jobtext_free ends it. Strings point into it.
 * Errors:    ERR_INVALID when the object has no usable metadata, or its status is larger than one of ours can be.
 */
#ifndef TK_OPERATOR_API_JOBTEXT_H
#define TK_OPERATOR_API_JOBTEXT_H

#include "operator/api/trainjob.h"

enum {
    /* Of spec, measured as the API server writes it (<, >, & take six bytes, U+2028 and U+2029 too): so what is made of it is
     * bounded when it comes back, too. kubectl apply takes no more. */
    JOBTEXT_SPEC_BYTES = 256 << 10,
    /* Of status: 1,024 replicas take 300 KiB, all messages together 60. */
    JOBTEXT_STATUS_BYTES = 512 << 10,
    JOBTEXT_POLICY_BYTES = 4 << 10, /* of runPolicy in a spec that is not kept */
};

struct jobtext {
    const char *ns, *name, *uid, *resource_version;
    int64_t generation;
    enum job_phase phase;
    const char *unreadable; /* why nothing but what skim_object finds is known of it; "": it could be read */
    const char *json;       /* spec, status, and of metadata what is read */
    size_t json_len;
    bool too_large; /* its spec is: it is not kept, but for runPolicy, and counts as a bad one */
};

/* `object` is borrowed for the call. */
struct jobtext *jobtext_new(const cJSON *object, struct err *err) MUST_CHECK;
struct jobtext *jobtext_new_unreadable(const cJSON *names, const struct err *why, struct err *err) MUST_CHECK;
void jobtext_free(struct jobtext *t);

/* The job as trainjob.h has it; it borrows nothing from the text. */
struct trainjob *jobtext_decode(const struct jobtext *t, struct err *err) MUST_CHECK;

#endif
