/* elector.h - leader election in the loop: keeps the Lease, and lets writes pass only while it is held.
 *
 * Ownership: borrows loop and transport; strings of the options are copied. elector_free cancels without giving
 *            the lease up.
 * Errors:    none end it: what went wrong is told to `problem` and tried again.
 * Order:     callbacks come from the loop. `changed` is told each turn of fate once: true when we lead, false when
 *            we do not any more, at the latest when the renew deadline passes.
 */
#ifndef TK_KUBE_ELECTOR_H
#define TK_KUBE_ELECTOR_H

#include "kube/lease.h"
#include "kube/loop.h"

struct elector;

/* Each may be NULL. */
struct elector_sink {
    void *ctx;
    void (*changed)(void *ctx, bool leads);
    void (*waiting)(void *ctx, const char *holder); /* somebody else leads: once for each holder */
    void (*problem)(void *ctx, const struct err *err);
};

struct elector *elector_new(struct kube_loop *l, const struct kube_transport *t,
                            const struct lease_options *options, const struct elector_sink *sink);
void elector_start(struct elector *e);

/* Whether a write may be sent, by the clock of this very moment: a process that was stopped and goes on asks too. */
bool elector_is_held(const struct elector *e);

/* The transport with a fence: reads pass; anything else is refused with ERR_TRANSIENT unless the lease is held, both
 * when it is started and when it leaves. Valid as long as the elector. */
struct kube_transport elector_transport(struct elector *e);

/* Give the lease up, for the next one to take at once; then `done`, perhaps from inside. */
void elector_let_go(struct elector *e, void (*done)(void *ctx), void *ctx);
void elector_free(struct elector *e);

static inline void elector_freep(struct elector **e)
{
    elector_free(*e);
}
#define cleanup_elector __attribute__((cleanup(elector_freep)))

#endif
