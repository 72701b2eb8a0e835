/* stop.h - poll between steps whether SIGTERM or SIGINT has arrived. run.c and train.c call it.
 *
 * Order:  stop_open blocks both signals for the process; call it before any thread is created, but only when
 *         the run starts to poll: the signals must still end a rank that waits for its peers. Blocked signals
 *         are inherited over exec: stop_close restores the former mask and discards signals that are pending.
 * Errors: ERR_FATAL (the kernel refused; code = errno).
 */
#ifndef TK_TRAINER_RUN_STOP_H
#define TK_TRAINER_RUN_STOP_H

#include "common/cleanup.h"
#include "common/err.h"

#include <signal.h>
#include <stdint.h>

struct stop {
    int fd;         /* signalfd; -1: closed */
    uint32_t flags; /* enum collectives_flag: signals received so far */
    sigset_t before;
};

int stop_open(struct stop *s, struct err *err) MUST_CHECK;

/* The flags of the signals received since stop_open: 0, or COLLECTIVES_STOP_TERM | COLLECTIVES_STOP_INT. */
uint32_t stop_poll(struct stop *s);

void stop_close(struct stop *s);
#define cleanup_stop __attribute__((cleanup(stop_close)))

/* 143 (SIGTERM) or 130 (SIGINT); 143 if both have come. */
int stop_exit_code(uint32_t flags);

#endif
