/* gangapi.h - the API of each gang scheduler's PodGroups. Pure. */
#ifndef TK_OPERATOR_GANGAPI_H
#define TK_OPERATOR_GANGAPI_H

#include "kube/request.h"
#include "operator/api/pod.h"

/* PodGroups of this scheduler in the version-th of the API's versions, newest first; NULL: there is no further
 * one. */
const struct kube_resource *gangapi_resource(enum gang_scheduler scheduler, int version);

#endif
