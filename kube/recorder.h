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

struct recorder;

/* The object it is about. ns NULL or "": cluster-scoped, the Event goes to "default". */
struct recorder_object {
    const char *api_version, *kind, *ns, *name, *uid;
    const char *resource_version; /* may be NULL */
};

struct recorder_stats {
    uint64_t sent, dropped, failed;
};

/* component: "ptj-operator"; host may be NULL. */
struct recorder *recorder_new(struct loop *l, const struct transport *t, const char *component,
                              const char *host);
void recorder_free(struct recorder *r); /* what was not sent is lost */

/* Before the end: what waits is sent, failures are tried again soon; then `done`, perhaps from inside, at until_ms (of
 * the loop's clock) at the latest. Once. */
void recorder_flush(struct recorder *r, int64_t until_ms, void (*done)(void *ctx), void *ctx);

/* warning: type Warning, else Normal. reason is CamelCase. */
void recorder_event(struct recorder *r, const struct recorder_object *object, bool warning,
                    const char *reason, const char *fmt, ...) __attribute__((format(printf, 5, 6)));

struct recorder_stats recorder_stats(const struct recorder *r);

static inline void recorder_freep(struct recorder **r)
{
    recorder_free(*r);
}
#define cleanup_recorder __attribute__((cleanup(recorder_freep)))

#endif
