/* workqueue.h - keys that need work: each one at a time, none lost, failures later and later. Pure:
 * time is given.
 *
 * Ownership: keys are copied. A key taken is valid until its workqueue_done.
 * Units:     milliseconds on any one clock.
 * Order:     due keys come first in, first out. A key added while it is being worked on comes again
 *            after workqueue_done. Of two times for one key the earlier wins.
 */
#ifndef TK_KUBE_WORKQUEUE_H
#define TK_KUBE_WORKQUEUE_H

#include "common/cleanup.h"
#include "kube/histogram.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct workqueue;

enum { WORKQUEUE_BACKOFF_MIN_MS = 5, WORKQUEUE_BACKOFF_MAX_MS = 1000000 };

/* Counted as client-go's queues do. */
struct workqueue_stats {
    size_t depth;      /* due, and not taken */
    size_t delayed;    /* due later */
    size_t processing; /* taken and not done */
    uint64_t adds;     /* how often a key became due; one that is due already is no second one */
    uint64_t retries;
    struct histogram queued; /* from due to taken */
    struct histogram worked; /* from taken to done */
};

struct workqueue_unfinished {
    int64_t sum_ms; /* of all keys taken and not done, since each was taken */
    int64_t longest_ms;
};

struct workqueue *workqueue_new(void);
void workqueue_free(struct workqueue *q);

void workqueue_add(struct workqueue *q, const char *key, int64_t now_ms);
void workqueue_add_at(struct workqueue *q, const char *key, int64_t at_ms);

/* Add after this key's back-off: 5 ms doubling to 1000 s, never sooner than not_before_ms (0: no bound; a
 * server's Retry-After). */
void workqueue_retry(struct workqueue *q, const char *key, int64_t now_ms, int64_t not_before_ms);

/* The work succeeded: its next failure starts at 5 ms again. */
void workqueue_forget(struct workqueue *q, const char *key);

/* The next due key, or NULL. It is being processed until workqueue_done. */
const char *workqueue_take(struct workqueue *q, int64_t now_ms);
void workqueue_done(struct workqueue *q, const char *key, int64_t now_ms);

/* When a key becomes due next: INT64_MIN for at once, INT64_MAX for never. */
int64_t workqueue_next_ms(const struct workqueue *q);

struct workqueue_stats workqueue_stats(const struct workqueue *q);
struct workqueue_unfinished workqueue_unfinished(const struct workqueue *q,
                                                 int64_t now_ms); /* looks at every key */

static inline void workqueue_freep(struct workqueue **q)
{
    workqueue_free(*q);
}
#define cleanup_workqueue __attribute__((cleanup(workqueue_freep)))

#endif
