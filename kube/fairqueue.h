/* fairqueue.h - a queue that serves shares (namespaces) in turn, first in first out inside a share, and
 * limits how many items are in flight ("out") at once. Pure: the caller gives the time.
 *
 *     fairqueue_join -> idle --fairqueue_wait--> waiting --fairqueue_go--> out
 *                        ^                          |                       |
 *                        '-------- fairqueue_end ---'-----------------------'
 *
 * Ownership: items live inside the caller's structs and belong to the queue from fairqueue_join to
 *            fairqueue_leave. The name of a share is copied, once for all its items.
 * Units:     milliseconds of any one clock that never goes back.
 * Order:     an item that waits as `later` comes behind the ordinary ones of all shares that may go. After
 *            later_ms of waiting it moves to the end of its share's ordinary line.
 * Cost:      no call visits more shares than have items out, however many items wait.
 *
 * Which item may go:
 *   - of a share that has nothing out: any item, while one of the `slots` is free; an item that does not wait
 *     as `later` also while one of the `reserved` slots is free;
 *   - of another share: while one of the `slots` is free and fewer than share_max of its items are out.
 *
 * An item that has been out for slow_ms is slow. A slow item frees its slot, except items beyond
 * slow_share_max of one share or beyond slow_max in all. A share that has a slow item and slow_share_max
 * items out gets another slot only while less than half of the `slots` are taken. So slow shares never hold
 * more than half of the slots, as long as slow_max is not reached.
 */
#ifndef TK_KUBE_FAIRQUEUE_H
#define TK_KUBE_FAIRQUEUE_H

#include "common/cleanup.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct fairqueue;

struct fairqueue_limits {
    int slots, reserved, share_max;
    int64_t slow_ms; /* INT64_MAX: nothing is slow */
    int slow_share_max, slow_max;
    int64_t later_ms;
};

struct fairqueue_link {
    struct fairqueue_link *prev, *next;
};

enum fairqueue_state { FAIRQUEUE_IDLE, FAIRQUEUE_WAITING, FAIRQUEUE_LATER, FAIRQUEUE_OUT, FAIRQUEUE_SLOW };

/* The caller only reads state and since_ms, and sets keeps_slot. */
struct fairqueue_item {
    struct fairqueue_link line; /* in its share's line */
    struct fairqueue_link age;  /* among all that wait as `later`, or all that are out and not slow */
    struct fairqueue_share *share;
    enum fairqueue_state state;
    bool keeps_slot;  /* never becomes slow; set it after fairqueue_join */
    int64_t since_ms; /* when it began to wait, or went out */
};

struct fairqueue *fairqueue_new(const struct fairqueue_limits *limits);
void fairqueue_free(struct fairqueue *f); /* items may still be joined; they are not accessed */

void fairqueue_join(struct fairqueue *f, struct fairqueue_item *it, const char *share);
void fairqueue_leave(struct fairqueue *f, struct fairqueue_item *it); /* from any state */
const char *fairqueue_share(const struct fairqueue_item *it);

/* Queue an idle item. For items that wait as `later`, since_ms must not decrease from call to call. */
void fairqueue_wait(struct fairqueue *f, struct fairqueue_item *it, bool later, int64_t since_ms);

/* The next item that may go; NULL: none. It still waits: pass it to fairqueue_go. */
struct fairqueue_item *fairqueue_next(struct fairqueue *f, int64_t now_ms);
void fairqueue_go(struct fairqueue *f, struct fairqueue_item *it, int64_t now_ms); /* it must be waiting */
void fairqueue_end(struct fairqueue *f, struct fairqueue_item *it);                /* it becomes idle */

/* When to call fairqueue_next again after it returned NULL, if no item ends before. INT64_MAX: never. */
int64_t fairqueue_due_ms(const struct fairqueue *f);

/* Whether one more item of this share would wait until an item, of this share or of any, has ended. */
bool fairqueue_is_full(struct fairqueue *f, const char *share);

static inline void fairqueue_freep(struct fairqueue **f)
{
    fairqueue_free(*f);
}
#define cleanup_fairqueue __attribute__((cleanup(fairqueue_freep)))

#endif
