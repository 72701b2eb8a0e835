/* watcher.h - the state machine of a reflector: which request to send next, and what an answer means. Pure:
 * the caller gives bytes and time.
 *
 * It requests the collection as a list in pages, then a watch from the list's version. The list carries no
 * resourceVersion: the server then asks etcd for the latest revision and answers from a state that is no
 * older (apiserver: storage/cacher, getWatchCacheResourceVersion). So the state after a restart or a relist
 * is never older than a state that the process has acted on. "Any version" (0, client-go's first list) gives
 * no such guarantee. An event with a lower version than the event before it shows a state that was replaced,
 * or an etcd restored from a backup: the watcher rejects it and lists again.
 *
 * An object that cannot be read (too long, too deep, too many values, a NUL) does not end the watch: the
 * watcher passes its names (skim.h) to the sink and continues. An event without readable names causes a new
 * list, since it may concern any object. Text that is not JSON may have been corrupted in transit: the first
 * such object causes a new list; for further ones within two minutes the sink gets the names.
 *
 * Memory:    while bytes arrive: the current object (3 MiB at most) and its names (kilobytes). When the
 *            object is complete, also its tree, at most 18 MiB + 1.1 * 3 MiB (json.h). That is 25 MiB in all;
 *            only the 3 MiB outlast the call, and those only while an object arrives. Watchers on one thread
 *            parse one object at a time: 4 of them need 4 * 3 + 22 = 34 MiB.
 * Ownership: borrows the strings of its options; objects given to the sink are borrowed for the call.
 * Units:     milliseconds of one monotonic clock.
 * Order:     watcher_begin, watcher_request, any number of watcher_feed, watcher_end, and so on. The sink's
 *            order is that of reflector.h.
 */
#ifndef TK_KUBE_WATCHER_H
#define TK_KUBE_WATCHER_H

#include "common/arena.h"
#include "common/backoff.h"
#include "kube/request.h"

#include <cjson/cJSON.h>
#include <stdint.h>

enum {
    WATCHER_PAGE_ITEMS = 500,
    /* etcd stores 1.5 MiB per object, which JSON escapes can make six times as long. Real objects have a
     * tenth of that. */
    WATCHER_OBJECT_MAX_BYTES = KUBE_OBJECT_MAX_BYTES,
    WATCHER_IDLE_MS = 150000, /* two and a half intervals between bookmarks */
    WATCHER_QUIET_MS = BACKOFF_QUIET_MS,
    WATCHER_SHORT_MS = 1000, /* a shorter watch without an event counts as a failure */
    /* A watch that was lost for this long is not resumed: etcd may have been restored from a backup
     * meanwhile, and the server would send nothing until it has reached our version again. */
    WATCHER_AWAY_MS = 10000,
    WATCHER_RESUMES = 3, /* failed watches in a row before a new list */
};

struct watcher;

struct watcher_sink {
    void *ctx;
    void (*replace_begin)(void *ctx);
    void (*replace_end)(void *ctx);
    void (*upsert)(void *ctx, const cJSON *object);  /* an item of a list may lack kind and apiVersion */
    void (*removed)(void *ctx, const cJSON *object); /* at least the members that `unreadable` gets */
    /* The object exists in this version and cannot be read: `names` is the result of skim.h. For an item of a
     * list it may lack more: it may have only namespace and name, or neither. */
    void (*unreadable)(void *ctx, const cJSON *names, const struct err *why);
    void (*problem)(void *ctx, const struct err *err);
};

struct kube_watcher_options {
    struct kube_resource resource;
    const char *ns; /* NULL: all namespaces */
    const char *label_selector;
    const char *field_selector;
    uint64_t seed; /* of the jitter, and of the random durations of watches */
};

struct kube_watcher_stats {
    uint64_t lists;  /* begun */
    uint64_t syncs;  /* lists completed */
    uint64_t listed; /* the number (1 = the first list begun) of the last one completed */
    uint64_t failures;
    uint64_t bytes;    /* of JSON, over all events and items */
    int64_t listed_ms; /* when list number `listed` was complete */
    bool synced;       /* a list was completed at least once */
};

struct watcher *watcher_new(const struct kube_watcher_options *options, const struct watcher_sink *sink);
void watcher_free(struct watcher *w);

/* The request to send now; lives in the arena. ERR_INVALID: the options do not make a valid request. */
int watcher_request(struct watcher *w, struct arena *a, struct kube_http_request *out,
                    struct err *err) MUST_CHECK;

void watcher_begin(struct watcher *w, int64_t now_ms);

/* Bytes of a 2xx body. -1: the body is rejected; cancel the request and call watcher_end with r and err NULL. */
int watcher_feed(struct watcher *w, struct sv bytes, int64_t now_ms) MUST_CHECK;

/* The answer has ended. Exactly one of r and err is set, or neither after a failed feed. Returns how long to
 * wait before the next request, in milliseconds. */
int64_t watcher_end(struct watcher *w, int64_t now_ms, const struct kube_http_response *r,
                    const struct err *err);

/* List again: after the list in progress, if there is one. give_up: instead of it. Returns true when the
 * caller must cancel the request in flight. */
bool watcher_relist(struct watcher *w, bool give_up);

/* The version that the sink has reached. "": unknown until the server sends a version, in a complete list or,
 * after a watch that failed, in an event: etcd may have been restored from a backup, and its versions may be
 * lower. */
const char *watcher_version(const struct watcher *w);

struct kube_watcher_stats watcher_stats(const struct watcher *w);

#endif
