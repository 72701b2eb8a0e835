/* gangapi.c - the API of each gang scheduler's PodGroups. */
#include "operator/gangapi.h"

#define PODGROUPS(group, version)                                                                            \
    {                                                                                                        \
        group, version, "podgroups", "PodGroup", false                                                       \
    }

const struct kube_resource *gangapi_resource(enum gang_scheduler scheduler, int version)
{
    enum { VERSIONS_MAX = 3 };
    static const struct kube_resource APIS[][VERSIONS_MAX] = {
        [GANG_COSCHEDULING] = {PODGROUPS("scheduling.x-k8s.io", "v1alpha1")},
        [GANG_VOLCANO] = {PODGROUPS("scheduling.volcano.sh", "v1beta1")},
        /* No release up to 1.37 serves any of them by default. */
        [GANG_NATIVE] = {PODGROUPS("scheduling.k8s.io", "v1beta1"),
                         PODGROUPS("scheduling.k8s.io", "v1alpha3"),
                         PODGROUPS("scheduling.k8s.io", "v1alpha2")},
    };

    return version < VERSIONS_MAX && APIS[scheduler][version].plural ? &APIS[scheduler][version] : NULL;
}
