/* recorder.h - send Kubernetes Events about objects, as `kubectl describe` shows them.
 *
 * It counts repeated Events in one object, and limits the rate of each object: see correlator.h.
 * Ownership: borrows loop, transport and the name of the component; copies the rest.
 * Errors:    none to the caller: Events are best effort. The recorder tries a request 3 times, then drops the
 *            Event and counts it. At most 512 wait; it drops a new Event when its namespace has as many
 *            waiting as the queue has free slots.
 * Order:     one Event of a namespace at a time, in order. The transport serves the namespaces in turn, and
 *            Events after all other requests. A namespace whose requests get no answer delays only its own
 *            Events.
 */
#ifndef TK_KUBE_RECORDER_H
#define TK_KUBE_RECORDER_H

#include "kube/loop.h"
#include "kube/transport.h"

struct kube_recorder;

/* The object that the Event is about; it has a namespace. */
struct kube_recorder_object {
    const char *api_version, *kind, *ns, *name, *uid;
};

struct kube_recorder_stats {
    uint64_t sent, dropped, failed;
};

/* component: "ptj-operator". */
struct kube_recorder *kube_recorder_new(struct kube_loop *l, const struct kube_transport *t,
                                        const char *component);
void kube_recorder_free(struct kube_recorder *r); /* unsent Events are lost */

/* Before a shutdown: send the waiting Events, and retry failed requests soon. Then call `done` once, perhaps
 * before this returns, at until_ms (of the loop's clock) at the latest. */
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
