/* elector.h - leader election in the event loop: acquires and renews the Lease, and blocks writes while the
 * process does not hold it.
 *
 * Ownership: borrows loop, transport and the strings of the options. elector_free cancels its request
 *            without releasing the lease.
 * Errors:    none is final: the elector passes each to `problem` and retries the request.
 * Order:     callbacks are called from the loop, and from inside elector_start and elector_release. `changed`
 *            is called once for each change: true when this process becomes the leader, false when it no
 *            longer is, at the latest when the renew deadline passes. After a loss the elector competes
 *            again, and the caller continues as a standby (manager.h).
 */
#ifndef TK_KUBE_ELECTOR_H
#define TK_KUBE_ELECTOR_H

#include "kube/lease.h"
#include "kube/loop.h"

struct elector;

/* Each callback may be NULL. */
struct elector_sink {
    void *ctx;
    void (*changed)(void *ctx, bool leads);
    void (*waiting)(void *ctx, const char *holder); /* another process leads; once for each holder */
    void (*problem)(void *ctx, const struct err *err);
};

struct elector *elector_new(struct kube_loop *l, const struct kube_transport *t,
                            const struct lease_options *options, const struct elector_sink *sink);
void elector_start(struct elector *e);

/* Whether a write may be sent now. It reads the clock instead of the loop's time, so the answer is right also
 * after the process was suspended. */
bool elector_is_held(const struct elector *e);

/* The transport with a gate for writes. GET requests are always sent. Any other request fails with
 * ERR_TRANSIENT unless the process holds the lease, both when the request is started and when it is about to
 * be sent. Valid as long as the elector. */
struct kube_transport elector_transport(struct elector *e);

/* Release the lease so that another candidate can acquire it immediately; then call `done`, perhaps before
 * this returns. */
void elector_release(struct elector *e, void (*done)(void *ctx), void *ctx);
void elector_free(struct elector *e);

#endif
