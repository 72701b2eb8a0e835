/* loop.h - the event loop of one thread: timers, tasks, signals, file descriptors and libcurl transfers.
 *
 * Ownership: timers, fds and tasks are structs of the caller, linked into the loop while they are set; cancel
 *            or remove them before their memory is freed. A zeroed struct with callback and ctx filled in is
 *            ready for use.
 * Units:     monotonic milliseconds, read once per turn (kube_loop_now_ms).
 * Errors:    ERR_FATAL: out of descriptors, or libcurl fails. Out of memory ends the process.
 * Order:     a turn waits, reads the clock, then runs signals and fds, transfers, tasks, due timers. No
 *            callback runs inside another one, and none inside libcurl: a task or timer set from a callback
 *            runs later.
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

/* Runs once, later in this turn or in the next one. */
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

/* A libcurl transfer: its easy handle has the address of this struct as CURLOPT_PRIVATE. */
struct kube_loop_transfer {
    void (*done)(void *ctx, int curl_code);
    void *ctx;
};

struct kube_loop *kube_loop_new(struct clock clock, struct err *err) MUST_CHECK;
void kube_loop_free(struct kube_loop *l); /* free everything that uses the loop first */

int64_t kube_loop_now_ms(const struct kube_loop *l);
struct clock kube_loop_clock(const struct kube_loop *l);
int64_t kube_loop_wall_ms(const struct kube_loop *l); /* of that clock, read now */

void kube_loop_timer_set(struct kube_loop *l, struct kube_loop_timer *t,
                         int64_t at_ms); /* a timer that is set moves */
void kube_loop_timer_cancel(struct kube_loop *l, struct kube_loop_timer *t);

void kube_loop_task_add(struct kube_loop *l,
                        struct kube_loop_task *t); /* a task that is queued already runs once */
void kube_loop_task_cancel(struct kube_loop *l, struct kube_loop_task *t);

int kube_loop_fd_add(struct kube_loop *l, struct kube_loop_fd *f, struct err *err) MUST_CHECK;
void kube_loop_fd_remove(struct kube_loop *l, struct kube_loop_fd *f);

/* Receive these signals through the loop from now on; they are blocked for the process. Once per loop. */
int kube_loop_signals(struct kube_loop *l, const int *signals, size_t n,
                      void (*on_signal)(void *ctx, int signal), void *ctx, struct err *err) MUST_CHECK;

/* The CURLM of this loop. */
void *kube_loop_curl(struct kube_loop *l);

/* Change how many connections libcurl keeps. Its limit counts connections in use and idle ones; beyond it, a
 * transfer that ends closes an idle connection of any user. So each user adds one per running transfer, while
 * it runs, plus the number of connections that it wants to keep idle. */
void kube_loop_connections(struct kube_loop *l, int change);

/* Run one turn, which waits at most max_wait_ms. */
int kube_loop_turn(struct kube_loop *l, int64_t max_wait_ms, struct err *err) MUST_CHECK;

/* Run turns until kube_loop_stop. */
int kube_loop_run(struct kube_loop *l, struct err *err) MUST_CHECK;
void kube_loop_stop(struct kube_loop *l);

static inline void kube_loop_freep(struct kube_loop **l)
{
    kube_loop_free(*l);
}
#define cleanup_kube_loop __attribute__((cleanup(kube_loop_freep)))

#endif
