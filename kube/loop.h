/* loop.h - one thread, one blocking call: timers, signals, file descriptors and libcurl's transfers.
 *
 * Ownership: timers, fds and tasks are structs of the caller, linked in while they are set; cancel or
 *            remove them before their memory goes. Zeroed with the callback filled in they are ready
 *            for use.
 * Units:     monotonic milliseconds; one reading per turn (loop_now_ms).
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

struct loop;

struct loop_timer {
    void (*fire)(void *ctx);
    void *ctx;
    struct heap_node node;
};

static inline bool loop_timer_is_set(const struct loop_timer *t)
{
    return t->node.slot > 0;
}

/* Runs once, later in the turn or in the next one. */
struct loop_task {
    void (*run)(void *ctx);
    void *ctx;
    struct loop_task *next;
    bool queued;
};

struct loop_fd {
    void (*ready)(void *ctx, short revents);
    void *ctx;
    int fd;
    short events; /* POLLIN, POLLOUT; may be changed at any time */
    size_t slot;
};

/* One libcurl transfer: its easy handle carries the address of this as CURLOPT_PRIVATE. */
struct loop_transfer {
    void (*done)(void *ctx, int curl_code);
    void *ctx;
};

struct loop *loop_new(struct clock clock, struct err *err) MUST_CHECK;
void loop_free(struct loop *l); /* everything else that uses it goes first */

int64_t loop_now_ms(const struct loop *l);
struct clock loop_clock(const struct loop *l);

void loop_timer_set(struct loop *l, struct loop_timer *t, int64_t at_ms); /* again: moves it */
void loop_timer_cancel(struct loop *l, struct loop_timer *t);

void loop_task_add(struct loop *l, struct loop_task *t); /* again before it ran: once */
void loop_task_cancel(struct loop *l, struct loop_task *t);

int loop_fd_add(struct loop *l, struct loop_fd *f, struct err *err) MUST_CHECK;
void loop_fd_remove(struct loop *l, struct loop_fd *f);

/* Take these signals through the loop from now on (they are blocked for the process). Once per loop. */
int loop_signals(struct loop *l, const int *signals, size_t n, void (*on_signal)(void *ctx, int signal),
                 void *ctx, struct err *err) MUST_CHECK;

/* The CURLM of this loop, for http.c. */
void *loop_curl(struct loop *l);

/* One turn that waits at most max_wait_ms. */
int loop_turn(struct loop *l, int64_t max_wait_ms, struct err *err) MUST_CHECK;

/* Turns until loop_stop. */
int loop_run(struct loop *l, struct err *err) MUST_CHECK;
void loop_stop(struct loop *l);

static inline void loop_freep(struct loop **l)
{
    loop_free(*l);
}
#define cleanup_loop __attribute__((cleanup(loop_freep)))

#endif
