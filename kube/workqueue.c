/* workqueue.c - due keys in a fair queue, delayed keys in a heap. */
#include "kube/workqueue.h"

#include "common/backoff.h"
#include "common/hash.h"
#include "common/hashtable.h"
#include "common/memory.h"
#include "kube/fairqueue.h"
#include "kube/heap.h"

#include <stdlib.h>
#include <string.h>

/* A key exists while it is due, delayed, being processed, or has failures to count. */
struct item {
    struct heap_node later; /* the first member: node and item have one address */
    struct hashtable_node by_key;
    struct fairqueue_item turn; /* idle, waiting: due, out: being processed */
    int64_t dirty_ms;           /* if dirty: when it is due again */
    int64_t not_before_ms;      /* from a server's Retry-After: never due before this */
    int failures;
    bool dirty; /* being processed, and added again */
    char name[];
};

struct workqueue {
    struct hashtable items; /* by key */
    struct fairqueue *turns;
    struct heap later;
    struct kube_workqueue_stats stats;
};

static const struct fairqueue_limits LIMITS = {.slots = WORKQUEUE_PARALLEL - WORKQUEUE_RESERVED,
                                               .reserved = WORKQUEUE_RESERVED,
                                               .share_max = WORKQUEUE_NAMESPACE,
                                               .slow_ms = INT64_MAX};

/* The labels that Go prints for client-go's buckets, so that queries over `le` can sum both kinds of
 * controllers. */
const struct histogram_bound WORKQUEUE_BOUNDS[11] = {{0, "1e-08"},
                                                     {0, "1e-07"},
                                                     {0, "1e-06"},
                                                     {0, "9.999999999999999e-06"},
                                                     {0, "9.999999999999999e-05"},
                                                     {1, "0.001"},
                                                     {10, "0.01"},
                                                     {100, "0.1"},
                                                     {1000, "1"},
                                                     {10000, "10"},
                                                     HISTOGRAM_INF};

static uint32_t hash_key(struct workqueue_key key)
{
    return hashtable_fold(hash_seeded(hash_seeded(0, key.ns, strlen(key.ns)), key.name, strlen(key.name)));
}

static bool is_due(const struct item *it)
{
    return it->turn.state == FAIRQUEUE_WAITING;
}

static bool is_processed(const struct item *it)
{
    return it->turn.state == FAIRQUEUE_OUT;
}

static struct item *item_of_turn(struct fairqueue_item *turn)
{
    return (void *)((char *)turn - offsetof(struct item, turn));
}

static struct item *item_by_key(struct hashtable_node *n)
{
    return (void *)((char *)n - offsetof(struct item, by_key));
}

struct workqueue *workqueue_new(void)
{
    struct workqueue *q = memory_must(calloc(1, sizeof(*q)));

    q->turns = fairqueue_new(&LIMITS);
    return q;
}

static void release(struct workqueue *q)
{
    for (struct hashtable_node *n = hashtable_first(&q->items); n;) {
        struct hashtable_node *next = hashtable_next(&q->items, n);
        free(item_by_key(n));
        n = next;
    }
    hashtable_release(&q->items);
    fairqueue_free(q->turns);
    heap_release(&q->later);
}

void workqueue_free(struct workqueue *q)
{
    if (!q)
        return;
    release(q);
    free(q);
}

void workqueue_clear(struct workqueue *q)
{
    struct kube_workqueue_stats stats = q->stats;

    release(q);
    stats.depth = stats.processing = 0;
    *q = (struct workqueue){.turns = fairqueue_new(&LIMITS), .stats = stats};
}

static bool has_key(const struct item *it, struct workqueue_key key)
{
    return strcmp(it->name, key.name) == 0 && strcmp(fairqueue_share(&it->turn), key.ns) == 0;
}

static struct item *find_item(const struct workqueue *q, struct workqueue_key key)
{
    struct hashtable_node *n = hashtable_first_of(&q->items, hash_key(key));

    while (n && !has_key(item_by_key(n), key))
        n = hashtable_next_of(n);
    return n ? item_by_key(n) : NULL;
}

static struct item *find_or_add(struct workqueue *q, struct workqueue_key key)
{
    struct item *it = find_item(q, key);

    if (it)
        return it;
    size_t len = strlen(key.name) + 1;
    it = memory_must(calloc(1, sizeof(*it) + len));
    memcpy(it->name, key.name, len);
    fairqueue_join(q->turns, &it->turn, key.ns);
    hashtable_add(&q->items, &it->by_key, hash_key(key));
    return it;
}

static void forget_if_idle(struct workqueue *q, struct item *it)
{
    if (it->turn.state != FAIRQUEUE_IDLE || it->later.slot || it->failures)
        return;
    hashtable_remove(&q->items, &it->by_key);
    fairqueue_leave(q->turns, &it->turn);
    free(it);
}

static void make_due(struct workqueue *q, struct item *it, int64_t since_ms)
{
    heap_remove(&q->later, &it->later);
    fairqueue_wait(q->turns, &it->turn, false, since_ms);
    q->stats.depth++;
    q->stats.adds++;
}

/* Make the key due at at_ms; a past time: due at the next take. */
static void schedule(struct workqueue *q, struct item *it, int64_t at_ms)
{
    if (is_due(it))
        return;
    at_ms = at_ms > it->not_before_ms ? at_ms : it->not_before_ms;
    if (is_processed(it)) {
        it->dirty_ms = it->dirty && it->dirty_ms < at_ms ? it->dirty_ms : at_ms;
        it->dirty = true;
    } else if (!it->later.slot || at_ms < it->later.at_ms) {
        heap_add(&q->later, &it->later, at_ms);
    }
}

void workqueue_add(struct workqueue *q, struct workqueue_key key, int64_t now_ms)
{
    struct item *it = find_or_add(q, key);

    if (is_processed(it) || now_ms < it->not_before_ms)
        schedule(q, it, now_ms);
    else if (!is_due(it))
        make_due(q, it, now_ms);
}

void workqueue_add_at(struct workqueue *q, struct workqueue_key key, int64_t at_ms)
{
    schedule(q, find_or_add(q, key), at_ms);
}

void workqueue_retry(struct workqueue *q, struct workqueue_key key, int64_t now_ms, int64_t not_before_ms)
{
    struct item *it = find_or_add(q, key);
    int64_t delay = backoff_delay_ms(WORKQUEUE_BACKOFF_MIN_MS, WORKQUEUE_BACKOFF_MAX_MS, it->failures);

    if (it->failures < 1000)
        it->failures++;
    q->stats.retries++;
    it->not_before_ms = not_before_ms;
    schedule(q, it, now_ms + delay);
}

void workqueue_forget(struct workqueue *q, struct workqueue_key key)
{
    struct item *it = find_item(q, key);

    if (!it)
        return;
    it->failures = 0;
    forget_if_idle(q, it);
}

struct workqueue_key workqueue_take(struct workqueue *q, int64_t now_ms)
{
    for (struct heap_node *n = heap_first(&q->later); n && n->at_ms <= now_ms; n = heap_first(&q->later))
        make_due(q, (struct item *)n, n->at_ms);
    struct fairqueue_item *turn = fairqueue_next(q->turns, now_ms);
    if (!turn)
        return (struct workqueue_key){0};
    histogram_add(&q->stats.queued, WORKQUEUE_BOUNDS, now_ms - turn->since_ms);
    fairqueue_go(q->turns, turn, now_ms);
    q->stats.depth--;
    q->stats.processing++;
    struct item *it = item_of_turn(turn);
    it->not_before_ms = 0;
    return (struct workqueue_key){fairqueue_share(turn), it->name};
}

void workqueue_done(struct workqueue *q, struct workqueue_key key, int64_t now_ms)
{
    struct item *it = find_item(q, key);

    if (!it || !is_processed(it))
        return;
    histogram_add(&q->stats.worked, WORKQUEUE_BOUNDS, now_ms - it->turn.since_ms);
    fairqueue_end(q->turns, &it->turn);
    q->stats.processing--;
    if (!it->dirty) {
        forget_if_idle(q, it);
        return;
    }
    it->dirty = false;
    if (it->dirty_ms <= now_ms && it->not_before_ms <= now_ms)
        make_due(q, it, it->dirty_ms);
    else
        schedule(q, it, it->dirty_ms);
}

int64_t workqueue_next_ms(const struct workqueue *q)
{
    if (fairqueue_next(q->turns,
                       0)) /* this queue has no slow and no later items, so the time does not matter */
        return INT64_MIN;
    return q->later.n ? heap_first(&q->later)->at_ms : INT64_MAX;
}

struct kube_workqueue_stats workqueue_stats(const struct workqueue *q)
{
    struct kube_workqueue_stats s = q->stats;

    s.delayed = q->later.n;
    return s;
}

struct kube_workqueue_unfinished workqueue_unfinished(const struct workqueue *q, int64_t now_ms)
{
    struct kube_workqueue_unfinished u = {0};

    for (struct hashtable_node *n = hashtable_first(&q->items); n; n = hashtable_next(&q->items, n)) {
        const struct item *it = item_by_key(n);
        int64_t ms = is_processed(it) ? now_ms - it->turn.since_ms : 0;
        u.sum_ms += ms;
        u.longest_ms = ms > u.longest_ms ? ms : u.longest_ms;
    }
    return u;
}
