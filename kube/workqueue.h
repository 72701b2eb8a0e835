/* workqueue.h - keys that need work: each one at a time, none lost, failures later and later. Pure:
 * time is given.
 *
 * Ownership: keys are copied, the names of namespaces once for all keys of one. A key taken is valid until its
 *            workqueue_done.
 * Units:     milliseconds on any one clock.
 * Order:     due keys come one namespace after the other, first in first out inside one, and as many at a time as
 *            fairqueue.h says with the numbers below: neither a slow namespace nor eight of them hold up another. A key
 *            added while it is being worked on comes again after workqueue_done. Of two times for one key the earlier wins,
 *            but none before a workqueue_retry's not_before_ms.
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

/* Counted as client-go's queues do. */
struct kube_workqueue_stats {
    size_t depth;      /* due, and not taken */
    size_t delayed;    /* due later */
    size_t processing; /* taken and not done */
    uint64_t adds;     /* how often a key became due; one that is due already is no second one */
    uint64_t retries;
    struct histogram queued; /* from due to taken */
    struct histogram worked; /* from taken to done */
};

struct kube_workqueue_unfinished {
    int64_t sum_ms; /* of all keys taken and not done, since each was taken */
    int64_t longest_ms;
};

enum {
    WORKQUEUE_PARALLEL = 64, /* taken and not done */
    WORKQUEUE_RESERVED = 16, /* the last of them are for namespaces that have none */
    /* Of one namespace: twice as many as it may have requests out, so that each of these that ends is followed by another. */
    WORKQUEUE_NAMESPACE = 16,
};

/* The same name in two namespaces is two keys. */
struct workqueue_key {
    const char *ns; /* whose turn it takes; "" is one like the others */
    const char *name;
};

struct workqueue *workqueue_new(void);
void workqueue_free(struct workqueue *q);

void workqueue_add(struct workqueue *q, struct workqueue_key key, int64_t now_ms);
void workqueue_add_at(struct workqueue *q, struct workqueue_key key, int64_t at_ms);

/* Add after this key's back-off: 5 ms doubling to a minute, never sooner than not_before_ms (0: no bound; a
 * server's Retry-After), whatever is added meanwhile. */
void workqueue_retry(struct workqueue *q, struct workqueue_key key, int64_t now_ms, int64_t not_before_ms);

/* The work succeeded: its next failure starts at 5 ms again. */
void workqueue_forget(struct workqueue *q, struct workqueue_key key);

/* The next due key that may be taken; its name is NULL when there is none. It is being processed until workqueue_done. */
struct workqueue_key workqueue_take(struct workqueue *q, int64_t now_ms);
void workqueue_done(struct workqueue *q, struct workqueue_key key, int64_t now_ms);

/* When a key can be taken next unless another is done before: INT64_MIN for at once, INT64_MAX for never. */
int64_t workqueue_next_ms(const struct workqueue *q);

struct kube_workqueue_stats workqueue_stats(const struct workqueue *q);
struct kube_workqueue_unfinished workqueue_unfinished(const struct workqueue *q,
                                                      int64_t now_ms); /* looks at every key */

static inline void workqueue_freep(struct workqueue **q)
{
    workqueue_free(*q);
}
#define cleanup_workqueue __attribute__((cleanup(workqueue_freep)))

#endif
