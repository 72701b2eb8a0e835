/* stop.h - ask between steps whether SIGTERM or SIGINT has arrived.
 *
 * Order:  stop_open blocks both signals for the process; call it before any thread is made, and not before somebody
 *         asks: a rank that waits for its peers to start must die of them. Blocked signals are inherited over exec:
 *         stop_close restores what was, and takes those that came meanwhile with it.
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

/* 143 or 130; SIGTERM wins, since whoever sends it counts the seconds. */
int stop_exit_code(uint32_t flags);

#endif
