/* watcher.h - the state machine of a reflector: what to request next, and what an answer means. Pure: bytes
 * and time are given.
 *
 * The collection comes as a list in pages, then as a watch from the list's version. The list carries no
 * resourceVersion: the server then asks etcd for the latest revision and answers from a state that is no
 * older (apiserver: storage/cacher, getWatchCacheResourceVersion). So the state after a restart or a relist
 * is never older than what was acted on. "Any version" (0, client-go's first list) gives no such guarantee. A
 * watch event with a version lower than the one before it shows a state that was replaced, or an etcd
 * restored from a backup: it is rejected, and everything is requested again.
 *
 * An object that cannot be read (too long, too deep, too many values, a NUL) does not end the watch: its
 * names are skimmed, the sink gets them, and the watch continues. An event without readable names causes a new
 * list, since it may concern any object. Text that is no JSON at all may have been corrupted on the way: the
 * first such object causes a new list; of those of the next two minutes the sink gets the names.
 *
 * Memory:    while bytes arrive: the present object (3 MiB at most) and a skim (kilobytes). When the object
 *            is complete, its tree besides, of at most 18 MiB + 1.1 * 3 MiB (json.h): 25 MiB in all, of which
 *            only the 3 MiB outlast the call, and those only while an object arrives. Several watchers on one
 *            thread share one tree at a time: 4 of them need 4 * 3 + 22 = 34 MiB.
 * Ownership: copies its options; objects given to the sink are borrowed for the call.
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
    /* etcd stores 1.5 MiB per object, which escapes can make six times as long; real objects have a tenth of
     * that. */
    WATCHER_OBJECT_MAX_BYTES = KUBE_OBJECT_MAX_BYTES,
    WATCHER_IDLE_MS = 150000, /* two and a half intervals between bookmarks */
    WATCHER_BACKOFF_MIN_MS = BACKOFF_MIN_MS,
    WATCHER_BACKOFF_MAX_MS = BACKOFF_MAX_MS,
    WATCHER_QUIET_MS = BACKOFF_QUIET_MS,
    WATCHER_SHORT_MS = 1000, /* a shorter watch that brought nothing counts as a failure */
    /* A watch that was lost for so long is not resumed: etcd may have been restored from a backup meanwhile,
     * and the server would send nothing until it has reached our version again. */
    WATCHER_AWAY_MS = 10000,
    WATCHER_RESUMES = 3, /* failed watches in a row before a new list */
};

struct watcher;

struct watcher_sink {
    void *ctx;
    void (*replace_begin)(void *ctx);
    void (*replace_end)(void *ctx);
    void (*upsert)(void *ctx, const cJSON *object);  /* an item of a list may lack kind and apiVersion */
    void (*removed)(void *ctx, const cJSON *object); /* at least as much of it as of an unreadable one */
    /* The object exists in this version and cannot be read: `names` is all that skim.h found. An item of a list may have less
     * than that: only its namespace and name, or neither. */
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
    uint64_t lists;   /* begun */
    uint64_t syncs;   /* lists completed */
    uint64_t listed;  /* the last one of them: it was the n-th that was begun */
    uint64_t watches; /* requested */
    uint64_t events, failures;
    uint64_t unreadable; /* events and items that could not be read */
    uint64_t bytes;      /* of JSON, over all events and items */
    int64_t listed_ms;   /* when that was complete */
    bool synced;         /* a list was completed at least once */
};

struct watcher *watcher_new(const struct kube_watcher_options *options, const struct watcher_sink *sink);
void watcher_free(struct watcher *w);

/* The request to send now; lives in the arena. ERR_INVALID: the options do not make a valid request. */
int watcher_request(struct watcher *w, struct arena *a, struct kube_http_request *out,
                    struct err *err) MUST_CHECK;

void watcher_begin(struct watcher *w, int64_t now_ms);

/* Bytes of a 2xx body. -1: the rest is useless; cancel the request and call watcher_end with r and err
 * NULL. */
int watcher_feed(struct watcher *w, struct sv bytes, int64_t now_ms) MUST_CHECK;

/* The answer has ended: exactly one of r and err is not NULL, or neither after a failed feed. Returns how
 * long to wait before the next request. */
int64_t watcher_end(struct watcher *w, int64_t now_ms, const struct kube_http_response *r,
                    const struct err *err);

/* The next request is the begin of a list: after the list under way, if there is one, unless that is given up. Returns whether
 * the request under way is to be cancelled. */
bool watcher_relist(struct watcher *w, bool give_up);

/* What came so far is as new as this. "": the server has to name a version first, by a complete list or, after a watch that
 * failed, by an event. It may be an etcd restored from a backup, whose versions are lower and mean something else. */
const char *watcher_version(const struct watcher *w);

struct kube_watcher_stats watcher_stats(const struct watcher *w);

#endif
