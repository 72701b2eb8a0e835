/* jobtext.h - a PyTorchTrainingJob at rest: the names, and the JSON as text. A few KiB, where the decoded job takes
 * about ten times that; it is decoded when it is due, and let go after the pass.
 *
 * Ownership: one block of memory, jobtext_free ends it. Strings point into it.
 * Errors:    ERR_INVALID when the object has no usable metadata.
 */
#ifndef TK_OPERATOR_API_JOBTEXT_H
#define TK_OPERATOR_API_JOBTEXT_H

#include "operator/api/trainjob.h"

/* Of spec. kubectl apply takes no more. */
enum { JOBTEXT_SPEC_BYTES = 256 << 10 };

struct jobtext {
    const char *ns, *name, *uid, *resource_version;
    int64_t generation;
    const char *json; /* without the metadata that nobody reads */
    size_t json_len;
    bool too_large; /* its spec is: it is not kept, but for runPolicy, and counts as a bad one */
};

/* `object` is borrowed for the call. */
struct jobtext *jobtext_new(const cJSON *object, struct err *err) MUST_CHECK;
void jobtext_free(struct jobtext *t);

/* The job as trainjob.h has it; it borrows nothing from the text. */
struct trainjob *jobtext_decode(const struct jobtext *t, struct err *err) MUST_CHECK;

#endif
