/* fairqueue.h - who goes next: one share (a namespace) after the other, first in first out inside a share. Pure: time is given.
 *
 *     fairqueue_join -> idle --fairqueue_wait--> waiting --fairqueue_go--> out
 *                        ^                          |                       |
 *                        '-------- fairqueue_end ---'-----------------------'
 *
 * Ownership: items live inside the caller's structs. One belongs to the queue from fairqueue_join to fairqueue_leave. The
 *            names of shares are copied, one for all items of a share.
 * Units:     milliseconds on any one clock that never goes back.
 * Order:     an item that waits as `later` comes behind all others, of every share, that may go. Once it has waited for
 *            later_ms it stands at the end of its share's line as the others do.
 * Cost:      no call looks at more shares than have items out, however many wait.
 *
 * Who may go:
 *   - of a share that has nothing out: anyone while one of the `places` is free, and but for those that wait as `later`
 *     while one of the `reserved` ones is;
 *   - of another share: while one of the `places` is free, and fewer than share_max of its items are out.
 * What has been out for slow_ms is slow. It gives its place up, but for more than slow_share_max of one share and more than
 * slow_max of all: those keep it. A share with a slow one and slow_share_max out takes another place only while less than
 * half of the `places` are taken: so slow shares never hold more than half of them, as long as slow_max is not reached.
 */
#ifndef TK_KUBE_FAIRQUEUE_H
#define TK_KUBE_FAIRQUEUE_H

#include "common/cleanup.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct fairqueue;

struct fairqueue_limits {
    int places, reserved, share_max;
    int64_t slow_ms; /* INT64_MAX: nothing is slow */
    int slow_share_max, slow_max;
    int64_t later_ms;
};

struct fairqueue_link {
    struct fairqueue_link *prev, *next;
};

enum fairqueue_state { FAIRQUEUE_IDLE, FAIRQUEUE_WAITING, FAIRQUEUE_LATER, FAIRQUEUE_OUT, FAIRQUEUE_SLOW };

/* The caller reads state and since_ms, and sets keeps_place; nothing else. */
struct fairqueue_item {
    struct fairqueue_link line; /* of its share */
    struct fairqueue_link age;  /* of all that wait as `later`, or of all that are out and not slow */
    struct fairqueue_share *share;
    enum fairqueue_state state;
    bool keeps_place; /* never slow, however long it is out; the caller may set it after fairqueue_join */
    int64_t since_ms; /* waiting or out: since when */
};

struct fairqueue *fairqueue_new(const struct fairqueue_limits *limits);
void fairqueue_free(struct fairqueue *f); /* items may still be joined; they are not looked at */

void fairqueue_join(struct fairqueue *f, struct fairqueue_item *it, const char *share);
void fairqueue_leave(struct fairqueue *f, struct fairqueue_item *it); /* from any state */
const char *fairqueue_share(const struct fairqueue_item *it);
size_t fairqueue_share_size(const struct fairqueue_item *it); /* how many have joined it */

/* One that is idle. Times of those that wait as `later` never go back. */
void fairqueue_wait(struct fairqueue *f, struct fairqueue_item *it, bool later, int64_t since_ms);

/* Who may go now; NULL: nobody. */
struct fairqueue_item *fairqueue_next(struct fairqueue *f, int64_t now_ms);
void fairqueue_go(struct fairqueue *f, struct fairqueue_item *it, int64_t now_ms); /* one that waits */
void fairqueue_end(struct fairqueue *f, struct fairqueue_item *it);                /* it is idle then */

/* After fairqueue_next found nobody: when to ask again though nothing ended. INT64_MAX: never. */
int64_t fairqueue_due_ms(const struct fairqueue *f);

size_t fairqueue_waiting(const struct fairqueue *f);

/* The next item of this share would wait until another one of it, or of all, has ended. */
bool fairqueue_is_full(struct fairqueue *f, const char *share);

static inline void fairqueue_freep(struct fairqueue **f)
{
    fairqueue_free(*f);
}
#define cleanup_fairqueue __attribute__((cleanup(fairqueue_freep)))

#endif
