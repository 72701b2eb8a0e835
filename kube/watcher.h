/* watcher.h - the state machine of a reflector: what to ask next, and what an answer means. Pure:
 * bytes and time are given.
 *
 * The collection comes as a stream (WatchList: a watch that begins with every object and says where that part ends),
 * or, from servers that have no such stream, as a list in pages. Both without a resourceVersion: then the server first
 * asks etcd how far the world is and answers from a state that is no older (apiserver: storage/cacher,
 * getWatchCacheResourceVersion). So what is served after a restart or a relist is never older than what was acted on;
 * "any version" (0, client-go's first list) promises no such thing.
 *
 * Ownership: copies its options; objects given to the sink are borrowed for the call.
 * Units:     milliseconds on one clock that does not go back.
 * Order:     watcher_request, watcher_begin, any number of watcher_feed, watcher_end, and so on for
 *            ever. The sink's order is that of reflector.h.
 */
#ifndef TK_KUBE_WATCHER_H
#define TK_KUBE_WATCHER_H

#include "common/arena.h"
#include "kube/backoff.h"
#include "kube/request.h"

#include <cjson/cJSON.h>
#include <stdint.h>

enum {
    WATCHER_PAGE_ITEMS = 500,
    WATCHER_OBJECT_MAX_BYTES = 3 << 20, /* etcd holds 1.5 MiB; JSON escapes may double it */
    WATCHER_IDLE_MS = 150000,           /* two and a half bookmarks */
    WATCHER_BACKOFF_MIN_MS = BACKOFF_MIN_MS,
    WATCHER_BACKOFF_MAX_MS = BACKOFF_MAX_MS,
    WATCHER_QUIET_MS = BACKOFF_QUIET_MS,
    WATCHER_SHORT_MS = 1000, /* a watch shorter than this that brought nothing is a failure */
    /* A watch that was lost for so long is not resumed: the store may have been put back from a copy meanwhile, and the server
     * would say nothing until it has given all numbers up to ours again. */
    WATCHER_AWAY_MS = 10000,
    WATCHER_RESUMES = 3, /* failed watches in a row before a new list; failed streams before one in pages */
};

struct watcher;

struct watcher_sink {
    void *ctx;
    void (*replace_begin)(void *ctx);
    void (*replace_end)(void *ctx);
    void (*upsert)(void *ctx, const cJSON *object); /* an item of a list may lack kind and apiVersion */
    void (*removed)(void *ctx, const cJSON *object);
    void (*problem)(void *ctx, const struct err *err);
};

struct watcher_options {
    struct kube_resource resource;
    const char *ns; /* NULL: all namespaces */
    const char *label_selector;
    const char *field_selector;
    uint64_t seed; /* of the jitter and of the watches' lengths */
    bool pages;    /* never as a stream */
};

struct watcher_stats {
    uint64_t lists;   /* begun, as a stream or in pages */
    uint64_t syncs;   /* lists completed */
    uint64_t watches; /* asked for; what follows a stream's first part needs no asking */
    uint64_t events, failures;
    int64_t progress_ms; /* when the server last said anything, be it an error */
    bool synced;         /* a list was completed, ever */
    bool no_streams;     /* the server said that it has none, or none are wanted */
};

struct watcher *watcher_new(const struct watcher_options *options, const struct watcher_sink *sink);
void watcher_free(struct watcher *w);

/* What to ask now; lives in the arena. ERR_INVALID: the options make no request. */
int watcher_request(struct watcher *w, struct arena *a, struct http_request *out, struct err *err) MUST_CHECK;

void watcher_begin(struct watcher *w, int64_t now_ms);

/* Bytes of a 2xx body. -1: the rest is of no use; cancel the request and call watcher_end with r and err NULL. */
int watcher_feed(struct watcher *w, struct sv bytes, int64_t now_ms) MUST_CHECK;

/* When to give up on the request under way: cancel it and call watcher_end with ERR_TIMEOUT. It moves with every
 * byte while a stream's first part comes, in which nothing makes a server pause; INT64_MAX at all other times. */
int64_t watcher_deadline_ms(const struct watcher *w);

/* The answer is over: exactly one of r and err is not NULL, or none after a failed feed. Returns how long to wait
 * before the next request. */
int64_t watcher_end(struct watcher *w, int64_t now_ms, const struct http_response *r, const struct err *err);

struct watcher_stats watcher_stats(const struct watcher *w);

#endif
