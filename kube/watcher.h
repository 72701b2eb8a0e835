/* watcher.h - the state machine of a reflector: what to ask next, and what an answer means. Pure:
 * bytes and time are given.
 *
 * The collection comes as a stream (WatchList: a watch that begins with every object and says where that part ends),
 * or, from servers that have no such stream, as a list in pages. Both without a resourceVersion: then the server first
 * asks etcd how far the world is and answers from a state that is no older (apiserver: storage/cacher,
 * getWatchCacheResourceVersion). So what is served after a restart or a relist is never older than what was acted on;
 * "any version" (0, client-go's first list) promises no such thing. A watch that tells a version lower than the one before it
 * shows a state that was already replaced, or a store that was put back from a copy: it is not believed, and everything is
 * asked for again.
 *
 * An object that cannot be read (too long, too deep, too many values, a NUL) ends nothing: its names are read without a tree,
 * the sink is told, and the watch goes on behind it. What is no JSON at all may have been spoiled on the way: the first such
 * object is answered with a new list, and within two minutes of it the next ones are passed over, too.
 *
 * Memory: while bytes come, the object under way (3 MiB at most) and a skim (kilobytes). When it is whole its tree besides, of
 *            18 MiB + 1.1 * 3 MiB (json.h): 25 MiB at most, of which only the 3 MiB outlast the call, and these only while an
 *            object is under way. Several watchers on one thread have one tree between them: 4 of them 4 * 3 + 22 = 34 MiB.
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
    /* etcd holds 1.5 MiB, of which escapes may make six times as much; what people use has a tenth. */
    WATCHER_OBJECT_MAX_BYTES = KUBE_OBJECT_MAX_BYTES,
    WATCHER_IDLE_MS = 150000, /* two and a half bookmarks */
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
    void (*upsert)(void *ctx, const cJSON *object);  /* an item of a list may lack kind and apiVersion */
    void (*removed)(void *ctx, const cJSON *object); /* at least as much of it as of one that is unreadable */
    /* It is there, at this version, and cannot be read: `names` is all that skim_object found. */
    void (*unreadable)(void *ctx, const cJSON *names, const struct err *why);
    void (*problem)(void *ctx, const struct err *err);
};

struct kube_watcher_options {
    struct kube_resource resource;
    const char *ns; /* NULL: all namespaces */
    const char *label_selector;
    const char *field_selector;
    uint64_t seed; /* of the jitter and of the watches' lengths */
    bool pages;    /* never as a stream */
};

struct kube_watcher_stats {
    uint64_t lists;   /* begun, as a stream or in pages */
    uint64_t syncs;   /* lists completed */
    uint64_t watches; /* asked for; what follows a stream's first part needs no asking */
    uint64_t events, failures;
    uint64_t unreadable; /* events and items that could not be read */
    uint64_t bytes;      /* of JSON, of all events and items */
    int64_t progress_ms; /* when the server last said anything, be it an error */
    bool synced;         /* a list was completed, ever */
    bool no_streams;     /* the server said that it has none, or none are wanted */
};

struct watcher *watcher_new(const struct kube_watcher_options *options, const struct watcher_sink *sink);
void watcher_free(struct watcher *w);

/* What to ask now; lives in the arena. ERR_INVALID: the options make no request. */
int watcher_request(struct watcher *w, struct arena *a, struct kube_http_request *out,
                    struct err *err) MUST_CHECK;

void watcher_begin(struct watcher *w, int64_t now_ms);

/* Bytes of a 2xx body. -1: the rest is of no use; cancel the request and call watcher_end with r and err NULL. */
int watcher_feed(struct watcher *w, struct sv bytes, int64_t now_ms) MUST_CHECK;

/* When to give up on the request under way: cancel it and call watcher_end with ERR_TIMEOUT. It moves with every
 * byte while a stream's first part comes, in which nothing makes a server pause; INT64_MAX at all other times. */
int64_t watcher_deadline_ms(const struct watcher *w);

/* The answer is over: exactly one of r and err is not NULL, or none after a failed feed. Returns how long to wait
 * before the next request. */
int64_t watcher_end(struct watcher *w, int64_t now_ms, const struct kube_http_response *r,
                    const struct err *err);

struct kube_watcher_stats watcher_stats(const struct watcher *w);

#endif
