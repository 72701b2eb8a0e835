/* reflector.h - keep a local copy of a collection up to date: list, watch, and list again when the watch
 * cannot be resumed.
 *
 * Ownership: borrows loop, transport and the strings of its options. Objects given to the sink are borrowed
 *            for the call.
 * Units:     monotonic milliseconds.
 * Errors:    none ends it: it passes each failure to sink.problem once, for the log, backs off (backoff.h)
 *            and continues.
 * Order:     a list is replace_begin, an upsert (or unreadable) for each object, replace_end. Objects not
 *            named in between no longer exist, also without a call of `removed`. A list that fails half way
 *            is begun again; no object counts as deleted until replace_end. Between lists, upsert and removed
 *            are called for each event. An object that was deleted and created again under the same name may
 *            appear as one upsert with another UID.
 */
#ifndef TK_KUBE_REFLECTOR_H
#define TK_KUBE_REFLECTOR_H

#include "kube/loop.h"
#include "kube/watcher.h"

struct reflector;

/* The first list begins in the next turn of the loop. */
struct reflector *reflector_new(struct kube_loop *l, const struct kube_transport *t,
                                const struct kube_watcher_options *options, const struct watcher_sink *sink);
void reflector_free(struct reflector *r); /* cancels its request */

/* List again, by a request that is sent from now on: after the list in progress, or after the current
 * back-off. at_once: cancel the list and skip the back-off. */
void reflector_relist(struct reflector *r, bool at_once);

const char *reflector_version(const struct reflector *r); /* as watcher_version */

struct kube_watcher_stats reflector_stats(const struct reflector *r);

#endif
