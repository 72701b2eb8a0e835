/* request.h - the request that carries out one action of a plan. Pure.
 *
 * Ownership: a request borrows from the action; what it needs besides lives in the arena.
 */
#ifndef TK_OPERATOR_REQUEST_H
#define TK_OPERATOR_REQUEST_H

#include "kube/request.h"
#include "operator/plan/plan.h"

extern const struct kube_resource TRAINJOBS;

const struct kube_resource *request_resource(enum child_kind child);

/* Not for events, which are no requests. */
struct kube_request request_of(const struct action *act, const char *ns, struct arena *a);

#endif
