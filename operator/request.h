/* request.h - build the API request for one action of a plan. Pure.
 *
 * Ownership: a request borrows from the action; what else it needs lives in the arena.
 */
#ifndef TK_OPERATOR_REQUEST_H
#define TK_OPERATOR_REQUEST_H

#include "kube/request.h"
#include "operator/plan/plan.h"

extern const struct kube_resource TRAINJOBS;

const struct kube_resource *request_resource(enum child_kind child);

/* Not for ACTION_EVENT, which goes to the recorder. */
struct kube_request request_of(const struct action *act, const char *ns, struct arena *a);

#endif
