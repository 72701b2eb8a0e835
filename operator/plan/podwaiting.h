/* podwaiting.h - find out from the Pod object why a pod does not start or end: for the operator's status and for
 * `kubectl ptj why`. Pure.
 *
 * Ownership: strings are literals, live in the arena or are borrowed from the pod.
 * Units:     milliseconds since the Unix epoch.
 */
#ifndef TK_OPERATOR_PLAN_PODWAITING_H
#define TK_OPERATOR_PLAN_PODWAITING_H

#include "common/arena.h"
#include "operator/api/pod.h"

struct waiting {
    const char *reason;  /* CamelCase; NULL: no known problem */
    const char *subject; /* the PVC, container, gate, ... for the REASON column; NULL: none, or unknown */
    const char *message; /* without the pod's name; "" when reason is NULL */
    const char *words;   /* the part of the message from the kubelet or the scheduler; "": none */
    const struct pod_container *container; /* the container that causes it; NULL: none */
    int64_t due_ms;                        /* when the wait becomes a problem; 0: no such time */
};

/* Why the pod does not start. `object` has its volumes: the Pod, or the template it was created from. */
struct waiting waiting_of(const struct pod *pod, const cJSON *object, int64_t now_ms, struct arena *a);

/* Why the pod still exists after its grace period. */
struct waiting waiting_for_end(const struct pod *pod, int64_t now_ms, struct arena *a);

#endif
