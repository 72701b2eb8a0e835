/* refusal.h - who refused a create, and for what: the API server's own words tell a wrong template from a policy. Pure. */
#ifndef TK_OPERATOR_REFUSAL_H
#define TK_OPERATOR_REFUSAL_H

#include "common/err.h"

enum refusal {
    REFUSAL_POLICY, /* quota, Pod Security, a webhook or another policy: the object may be taken later as it is */
    REFUSAL_FIELD, /* the server does not know a field, or finds it twice */
    REFUSAL_VALUE, /* the server knows the field and not this value */
};

/* Of an answer 400, 403 or 422 to the create of an object of this kind. The words of a policy stand behind the server's "pods
 * ... is forbidden" or "admission webhook ... denied the request", so that they cannot be taken for the server's own. */
enum refusal refusal_of(const char *kind, const char *message);

/* In the message of REFUSAL_FIELD for this pod, put the place of the template in the job in front of each path, and names in
 * place of indices: ours may stand before the user's, as in containers[0].env[3]. */
void refusal_put_paths(struct err *err, const char *body);

#endif
