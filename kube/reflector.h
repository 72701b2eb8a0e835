/* reflector.h - keeps a local copy of a collection true: list, watch, and list again when the watch
 * cannot go on.
 *
 * Ownership: borrows loop and transport; copies its options. Objects given to the sink are borrowed for
 *            the call.
 * Units:     monotonic milliseconds.
 * Errors:    none end it: it backs off (0.8 s doubling to 30 s, jittered) and goes on; each failure is
 *            told to sink.problem once, for the log.
 * Order:     replace_begin, upserts (or unreadable: it is there), replace_end: what was not upserted in between is gone (we may
 *            never have seen it go). A list that fails half way is begun again; nothing is gone until
 *            replace_end. Between lists: upsert and removed as they happen. An object deleted and
 *            created again under the same name may come as one upsert with another UID.
 */
#ifndef TK_KUBE_REFLECTOR_H
#define TK_KUBE_REFLECTOR_H

#include "kube/loop.h"
#include "kube/watcher.h"

struct reflector;

struct reflector *reflector_new(struct kube_loop *l, const struct kube_transport *t,
                                const struct kube_watcher_options *options, const struct watcher_sink *sink);
void reflector_start(struct reflector *r);
void reflector_free(struct reflector *r); /* cancels what is under way */

struct kube_watcher_stats reflector_stats(const struct reflector *r);

static inline void reflector_freep(struct reflector **r)
{
    reflector_free(*r);
}
#define cleanup_reflector __attribute__((cleanup(reflector_freep)))

#endif
