/* waiting.h - why a pod does not start or end, from the Pod object: for the operator's status and for `kubectl ptj
 * why`. Pure.
 *
 * Ownership: strings are literals, live in the arena or are borrowed from the pod.
 * Units:     milliseconds since the Unix epoch.
 */
#ifndef TK_OPERATOR_PLAN_WAITING_H
#define TK_OPERATOR_PLAN_WAITING_H

#include "common/arena.h"
#include "operator/api/pod.h"

struct waiting {
    const char *reason; /* CamelCase; NULL: no problem is known */
    const char
        *subject; /* the claim, container, gate, ... for the REASON column; NULL: clear, or not known */
    const char *message;                   /* without the pod's name; "" when reason is NULL */
    const char *words;                     /* of it what the kubelet or the scheduler said; "" for none */
    const struct pod_container *container; /* whose state says so; NULL: none does */
    int64_t due_ms; /* it may only just be starting: when that is no longer so. 0: not that */
};

/* Of the pod, whose volumes stand in `object`: the Pod, or the template it was made from. */
struct waiting waiting_of(const struct pod *pod, const cJSON *object, int64_t now_ms, struct arena *a);

/* The same of a pod whose grace period is over. */
struct waiting waiting_for_end(const struct pod *pod, int64_t now_ms, struct arena *a);

#endif
