/* stop.h - ask between steps whether SIGTERM or SIGINT has arrived.
 *
 * Order:  stop_open blocks both signals for the process; call it before any thread is created, and not before
 *         the run polls for them: a rank that still waits for its peers must be ended by them. Blocked signals are
 *         inherited over exec: stop_close restores the former mask and discards signals that are pending.
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
    uint32_t flags; /* enum collectives_flag: what has come so far */
    sigset_t before;
};

int stop_open(struct stop *s, struct err *err) MUST_CHECK;

/* The flags of the signals that have come since stop_open: 0, COLLECTIVES_STOP_TERM, COLLECTIVES_STOP_INT. */
uint32_t stop_poll(struct stop *s);

void stop_close(struct stop *s);
#define cleanup_stop __attribute__((cleanup(stop_close)))

/* 143 (SIGTERM) or 130 (SIGINT); 143 if both have come. */
int stop_exit_code(uint32_t flags);

#endif
