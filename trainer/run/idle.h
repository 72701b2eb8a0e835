/* idle.h - ranks beyond those that can share the batch or the stages: the first ranks train, the others wait until rank 0 reports
 * how the run has ended (collectives_end), and end with its exit status.
 *
 * Order:     idle_choose before the ranks meet. An idle rank then calls idle_wait alone; rank 0 collectives_end before it leaves
 *            the others.
 * Errors:    idle_wait: those of collectives_await_end. Nobody here notices an idle rank that ends: its launcher starts all
 *            ranks again.
 */
#ifndef TK_TRAINER_RUN_IDLE_H
#define TK_TRAINER_RUN_IDLE_H

#include "collectives/collectives.h"
#include "trainer/cli/config.h"

struct idle {
    int ranks;               /* that wait */
    bool self;               /* this is one of them */
    int exit_code;           /* self: of idle_wait */
    char why[ERR_MSG_BYTES]; /* they wait */
};

/* Reduce *ranks to those that train; an idle rank's stays. ERR_TRANSIENT: only more ranks can train this. What no number of
 * ranks can train is left for others to refuse. */
int idle_choose(struct idle *i, const struct config *cfg, struct collectives_config *ranks,
                struct err *err) MUST_CHECK;

/* Signals kill meanwhile. */
int idle_wait(struct idle *i, const struct collectives_config *ranks, int64_t timeout_ms,
              struct err *err) MUST_CHECK;

#endif
