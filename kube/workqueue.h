/* workqueue.h - a queue of keys to reconcile: a key is processed once at a time, none is lost, failed keys
 * return after a growing delay. Pure: the caller gives the time.
 *
 * Ownership: keys are copied, the name of a namespace once for all its keys. A key taken is valid until its
 *            workqueue_done.
 * Units:     milliseconds of any one clock.
 * Order:     namespaces are served in turn, first in first out inside one, limited by fairqueue.h with the
 *            numbers below, so that neither one slow namespace nor eight of them delay another. A key added
 *            while it is being processed is queued again after workqueue_done. Of two times for one key the
 *            earlier counts, but none before the not_before_ms of workqueue_retry.
 */
#ifndef TK_KUBE_WORKQUEUE_H
#define TK_KUBE_WORKQUEUE_H

#include "common/cleanup.h"
#include "kube/histogram.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct workqueue;

enum { WORKQUEUE_BACKOFF_MIN_MS = 5, WORKQUEUE_BACKOFF_MAX_MS = 60000 };

/* The buckets of client-go's queues, from 10 ns on. Durations here have a resolution of 1 ms. */
extern const struct histogram_bound WORKQUEUE_BOUNDS[11];

/* Counted as in client-go's queues. */
struct kube_workqueue_stats {
    size_t depth;      /* due and not taken */
    size_t delayed;    /* due later */
    size_t processing; /* taken and not done */
    uint64_t adds;     /* times that a key became due; adding a key that is due already does not count */
    uint64_t retries;
    struct histogram queued; /* time from due to taken */
    struct histogram worked; /* time from taken to done */
};

struct kube_workqueue_unfinished {
    int64_t sum_ms; /* sum over all keys taken and not done, since each was taken */
    int64_t longest_ms;
};

enum {
    WORKQUEUE_PARALLEL = 64, /* taken and not done */
    WORKQUEUE_RESERVED = 16, /* of these, for namespaces that have none taken */
    /* Per namespace: twice its limit of requests in flight, so that the next request is ready when one ends. */
    WORKQUEUE_NAMESPACE = 16,
};

/* The same name in two namespaces makes two keys. */
struct workqueue_key {
    const char *ns; /* namespaces are served in turn; "" is one like the others */
    const char *name;
};

struct workqueue *workqueue_new(void);
void workqueue_free(struct workqueue *q);
void workqueue_clear(struct workqueue *q); /* forget every key, taken ones too. The statistics stay */

void workqueue_add(struct workqueue *q, struct workqueue_key key, int64_t now_ms);
void workqueue_add_at(struct workqueue *q, struct workqueue_key key, int64_t at_ms);

/* Add after this key's back-off: 5 ms doubling to a minute, never sooner than not_before_ms (0: no bound;
 * from a server's Retry-After), also if the key is added again meanwhile. */
void workqueue_retry(struct workqueue *q, struct workqueue_key key, int64_t now_ms, int64_t not_before_ms);

/* The work succeeded: the next failure's delay starts at 5 ms again. */
void workqueue_forget(struct workqueue *q, struct workqueue_key key);

/* The next due key that may be taken; name NULL: none. It counts as being processed until workqueue_done. */
struct workqueue_key workqueue_take(struct workqueue *q, int64_t now_ms);
void workqueue_done(struct workqueue *q, struct workqueue_key key, int64_t now_ms);

/* When the next key can be taken, if no other is done before. INT64_MIN: now; INT64_MAX: never. */
int64_t workqueue_next_ms(const struct workqueue *q);

struct kube_workqueue_stats workqueue_stats(const struct workqueue *q);
struct kube_workqueue_unfinished workqueue_unfinished(const struct workqueue *q,
                                                      int64_t now_ms); /* visits every key */

static inline void workqueue_freep(struct workqueue **q)
{
    workqueue_free(*q);
}
#define cleanup_workqueue __attribute__((cleanup(workqueue_freep)))

#endif
