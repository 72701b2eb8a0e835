/* loop.h - one thread, one blocking call: timers, signals, file descriptors and libcurl's transfers.
 *
 * Ownership: timers, fds and tasks are structs of the caller, linked in while they are set; cancel or
 *            remove them before their memory goes. Zeroed with the callback filled in they are ready
 *            for use.
 * Units:     monotonic milliseconds; one reading per turn (kube_loop_now_ms).
 * Errors:    ERR_FATAL when the machine refuses (no descriptors); out of memory ends the process.
 * Order:     a turn is: wait -> clock -> signals and fds -> transfers -> tasks -> due timers. No
 *            callback runs inside another one, and none inside libcurl: a task or timer set from a
 *            callback runs later.
 */
#ifndef TK_KUBE_LOOP_H
#define TK_KUBE_LOOP_H

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/err.h"
#include "kube/heap.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct kube_loop;

struct kube_loop_timer {
    void (*fire)(void *ctx);
    void *ctx;
    struct heap_node node;
};

static inline bool kube_loop_timer_is_set(const struct kube_loop_timer *t)
{
    return t->node.slot > 0;
}

/* Runs once, later in the turn or in the next one. */
struct kube_loop_task {
    void (*run)(void *ctx);
    void *ctx;
    struct kube_loop_task *next;
    bool queued;
};

struct kube_loop_fd {
    void (*ready)(void *ctx, short revents);
    void *ctx;
    int fd;
    short events; /* POLLIN, POLLOUT; may be changed at any time */
    size_t slot;
};

/* One libcurl transfer: its easy handle carries the address of this as CURLOPT_PRIVATE. */
struct kube_loop_transfer {
    void (*done)(void *ctx, int curl_code);
    void *ctx;
};

struct kube_loop *kube_loop_new(struct clock clock, struct err *err) MUST_CHECK;
void kube_loop_free(struct kube_loop *l); /* everything else that uses it goes first */

int64_t kube_loop_now_ms(const struct kube_loop *l);
struct clock kube_loop_clock(const struct kube_loop *l);

void kube_loop_timer_set(struct kube_loop *l, struct kube_loop_timer *t, int64_t at_ms); /* again: moves it */
void kube_loop_timer_cancel(struct kube_loop *l, struct kube_loop_timer *t);

void kube_loop_task_add(struct kube_loop *l, struct kube_loop_task *t); /* again before it ran: once */
void kube_loop_task_cancel(struct kube_loop *l, struct kube_loop_task *t);

int kube_loop_fd_add(struct kube_loop *l, struct kube_loop_fd *f, struct err *err) MUST_CHECK;
void kube_loop_fd_remove(struct kube_loop *l, struct kube_loop_fd *f);

/* Take these signals through the loop from now on (they are blocked for the process). Once per loop. */
int kube_loop_signals(struct kube_loop *l, const int *signals, size_t n,
                      void (*on_signal)(void *ctx, int signal), void *ctx, struct err *err) MUST_CHECK;

/* The CURLM of this loop, for http.c. */
void *kube_loop_curl(struct kube_loop *l);

/* One turn that waits at most max_wait_ms. */
int kube_loop_turn(struct kube_loop *l, int64_t max_wait_ms, struct err *err) MUST_CHECK;

/* Turns until kube_loop_stop. */
int kube_loop_run(struct kube_loop *l, struct err *err) MUST_CHECK;
void kube_loop_stop(struct kube_loop *l);

static inline void kube_loop_freep(struct kube_loop **l)
{
    kube_loop_free(*l);
}
#define cleanup_kube_loop __attribute__((cleanup(kube_loop_freep)))

#endif
