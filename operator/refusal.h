/* refusal.h - who refused a create, and why: the API server's message distinguishes a wrong template from a
 * policy. actions.c calls it after such an answer. Pure. */
#ifndef TK_OPERATOR_REFUSAL_H
#define TK_OPERATOR_REFUSAL_H

#include "common/err.h"

enum refusal {
    REFUSAL_POLICY, /* quota, Pod Security, a webhook or another policy: the same object may be accepted later */
    REFUSAL_FIELD, /* the server does not know a field, or found it twice */
    REFUSAL_VALUE, /* the server knows the field but refuses the value */
};

/* Classify an answer 400, 403 or 422 to the create of an object of this kind. The text of a policy follows
 * the server's "pods ... is forbidden" or "admission webhook ... denied the request", so it cannot imitate
 * the server's messages. */
enum refusal refusal_of(const char *kind, const char *message);

/* In the message of REFUSAL_FIELD for this pod, prefix each path with the template's path in the job, and
 * replace indices by names: the operator's items may precede the user's, as in containers[0].env[3]. */
void refusal_put_paths(struct err *err, const char *body);

#endif
