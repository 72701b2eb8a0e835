/* recorder.h - Kubernetes Events: what happened to an object, for `kubectl describe`.
 *
 * Like client-go: the same event again counts up one Event object; more than 10 alike but for their
 * message within 10 minutes become one "(combined from similar events)"; each object may send 25 at
 * once and then one per 5 minutes.
 * Ownership: borrows loop and transport; copies what it is given.
 * Errors:    none to the caller: events are a courtesy. What cannot be sent is tried 3 times, then
 *            dropped and counted. 512 wait at most; a namespace that has as many of them as are free drops its new one.
 * Order:     one of a namespace at a time, in order, and namespaces in turn: one that does not answer holds up its own.
 */
#ifndef TK_KUBE_RECORDER_H
#define TK_KUBE_RECORDER_H

#include "kube/loop.h"
#include "kube/transport.h"

struct kube_recorder;

/* The object it is about. ns NULL or "": cluster-scoped, the Event goes to "default". */
struct kube_recorder_object {
    const char *api_version, *kind, *ns, *name, *uid;
    const char *resource_version; /* may be NULL */
};

struct kube_recorder_stats {
    uint64_t sent, dropped, failed;
};

/* component: "ptj-operator"; host may be NULL. */
struct kube_recorder *kube_recorder_new(struct kube_loop *l, const struct kube_transport *t,
                                        const char *component, const char *host);
void kube_recorder_free(struct kube_recorder *r); /* what was not sent is lost */

/* Before the end: what waits is sent, failures are tried again soon; then `done`, perhaps from inside, at until_ms (of
 * the loop's clock) at the latest. Once. */
void kube_recorder_flush(struct kube_recorder *r, int64_t until_ms, void (*done)(void *ctx), void *ctx);

/* warning: type Warning, else Normal. reason is CamelCase. */
void kube_recorder_event(struct kube_recorder *r, const struct kube_recorder_object *object, bool warning,
                         const char *reason, const char *fmt, ...) __attribute__((format(printf, 5, 6)));

struct kube_recorder_stats kube_recorder_stats(const struct kube_recorder *r);

static inline void kube_recorder_freep(struct kube_recorder **r)
{
    kube_recorder_free(*r);
}
#define cleanup_kube_recorder __attribute__((cleanup(kube_recorder_freep)))

#endif
