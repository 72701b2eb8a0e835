/* workqueue.c - a hash of keys, a FIFO of those due, a heap of those due later. */
#include "kube/workqueue.h"

#include "common/hash.h"
#include "common/memory.h"
#include "kube/heap.h"

#include <stdlib.h>
#include <string.h>

/* A key lives while it is due, delayed, being processed, or has failures to remember. */
struct item {
    struct heap_node later; /* first: a node's address is its item's */
    struct item *next_hash;
    struct item *next_due;
    int64_t dirty_ms; /* when dirty: due again from then on */
    int64_t since_ms; /* due or processing: since when */
    int failures;
    bool due; /* in the FIFO */
    bool processing;
    bool dirty; /* processing, and added again */
    uint64_t hash;
    char key[];
};

struct workqueue {
    struct item **buckets;
    size_t n_buckets; /* a power of two */
    size_t count;
    struct item *first_due, **last_due;
    struct heap later;
    struct workqueue_stats stats;
};

static uint64_t hash_key(const char *s)
{
    return hash_fnv1a(HASH_FNV1A, s, strlen(s));
}

struct workqueue *workqueue_new(void)
{
    struct workqueue *q = memory_must(calloc(1, sizeof(*q)));

    q->n_buckets = 64;
    q->buckets = memory_must(calloc(q->n_buckets, sizeof(*q->buckets)));
    q->last_due = &q->first_due;
    return q;
}

void workqueue_free(struct workqueue *q)
{
    if (!q)
        return;
    for (size_t i = 0; i < q->n_buckets; i++) {
        for (struct item *it = q->buckets[i]; it;) {
            struct item *next = it->next_hash;
            free(it);
            it = next;
        }
    }
    free(q->buckets);
    heap_release(&q->later);
    free(q);
}

static struct item **find(const struct workqueue *q, const char *key)
{
    uint64_t hash = hash_key(key);
    struct item **at = &q->buckets[hash & (q->n_buckets - 1)];

    while (*at && ((*at)->hash != hash || strcmp((*at)->key, key) != 0))
        at = &(*at)->next_hash;
    return at;
}

static void grow(struct workqueue *q)
{
    size_t n = q->n_buckets * 2;
    struct item **fresh = memory_must(calloc(n, sizeof(*fresh)));

    for (size_t i = 0; i < q->n_buckets; i++) {
        for (struct item *it = q->buckets[i]; it;) {
            struct item *next = it->next_hash;
            it->next_hash = fresh[it->hash & (n - 1)];
            fresh[it->hash & (n - 1)] = it;
            it = next;
        }
    }
    free(q->buckets);
    q->buckets = fresh;
    q->n_buckets = n;
}

static struct item *find_or_add(struct workqueue *q, const char *key)
{
    struct item **at = find(q, key);

    if (*at)
        return *at;
    size_t len = strlen(key) + 1;
    struct item *it = memory_must(calloc(1, sizeof(*it) + len));
    memcpy(it->key, key, len);
    it->hash = hash_key(key);
    *at = it;
    if (++q->count > q->n_buckets)
        grow(q);
    return it;
}

static void forget_if_idle(struct workqueue *q, struct item *it)
{
    if (it->due || it->later.slot || it->processing || it->failures)
        return;
    struct item **at = find(q, it->key);
    *at = it->next_hash;
    q->count--;
    free(it);
}

static void make_due(struct workqueue *q, struct item *it, int64_t since_ms)
{
    heap_remove(&q->later, &it->later);
    it->due = true;
    it->since_ms = since_ms;
    it->next_due = NULL;
    *q->last_due = it;
    q->last_due = &it->next_due;
    q->stats.depth++;
    q->stats.adds++;
}

/* Wait for at_ms; a time in the past is due at the next take. */
static void schedule(struct workqueue *q, struct item *it, int64_t at_ms)
{
    if (it->due)
        return;
    if (it->processing) {
        it->dirty_ms = it->dirty && it->dirty_ms < at_ms ? it->dirty_ms : at_ms;
        it->dirty = true;
    } else if (!it->later.slot || at_ms < it->later.at_ms) {
        heap_add(&q->later, &it->later, at_ms);
    }
}

void workqueue_add(struct workqueue *q, const char *key, int64_t now_ms)
{
    struct item *it = find_or_add(q, key);

    if (it->processing)
        schedule(q, it, now_ms);
    else if (!it->due)
        make_due(q, it, now_ms);
}

void workqueue_add_at(struct workqueue *q, const char *key, int64_t at_ms)
{
    schedule(q, find_or_add(q, key), at_ms);
}

void workqueue_retry(struct workqueue *q, const char *key, int64_t now_ms, int64_t not_before_ms)
{
    struct item *it = find_or_add(q, key);
    int64_t delay = WORKQUEUE_BACKOFF_MIN_MS;

    for (int i = 0; i < it->failures && delay < WORKQUEUE_BACKOFF_MAX_MS; i++)
        delay *= 2;
    if (delay > WORKQUEUE_BACKOFF_MAX_MS)
        delay = WORKQUEUE_BACKOFF_MAX_MS;
    if (it->failures < 1000)
        it->failures++;
    q->stats.retries++;
    schedule(q, it, now_ms + delay > not_before_ms ? now_ms + delay : not_before_ms);
}

void workqueue_forget(struct workqueue *q, const char *key)
{
    struct item *it = *find(q, key);

    if (!it)
        return;
    it->failures = 0;
    forget_if_idle(q, it);
}

const char *workqueue_take(struct workqueue *q, int64_t now_ms)
{
    for (struct heap_node *n = heap_first(&q->later); n && n->at_ms <= now_ms; n = heap_first(&q->later))
        make_due(q, (struct item *)n, n->at_ms);
    struct item *it = q->first_due;
    if (!it)
        return NULL;
    q->first_due = it->next_due;
    if (!q->first_due)
        q->last_due = &q->first_due;
    histogram_add(&q->stats.queued, now_ms - it->since_ms);
    it->due = false;
    it->processing = true;
    it->since_ms = now_ms;
    q->stats.depth--;
    q->stats.processing++;
    return it->key;
}

void workqueue_done(struct workqueue *q, const char *key, int64_t now_ms)
{
    struct item *it = *find(q, key);

    if (!it || !it->processing)
        return;
    histogram_add(&q->stats.worked, now_ms - it->since_ms);
    it->processing = false;
    q->stats.processing--;
    if (!it->dirty) {
        forget_if_idle(q, it);
        return;
    }
    it->dirty = false;
    if (it->dirty_ms <= now_ms)
        make_due(q, it, it->dirty_ms);
    else
        schedule(q, it, it->dirty_ms);
}

int64_t workqueue_next_ms(const struct workqueue *q)
{
    if (q->first_due)
        return INT64_MIN;
    return q->later.n ? heap_first(&q->later)->at_ms : INT64_MAX;
}

struct workqueue_stats workqueue_stats(const struct workqueue *q)
{
    struct workqueue_stats s = q->stats;

    s.delayed = q->later.n;
    return s;
}

struct workqueue_unfinished workqueue_unfinished(const struct workqueue *q, int64_t now_ms)
{
    struct workqueue_unfinished u = {0};

    for (size_t i = 0; i < q->n_buckets; i++) {
        for (const struct item *it = q->buckets[i]; it; it = it->next_hash) {
            int64_t ms = it->processing ? now_ms - it->since_ms : 0;
            u.sum_ms += ms;
            u.longest_ms = ms > u.longest_ms ? ms : u.longest_ms;
        }
    }
    return u;
}
