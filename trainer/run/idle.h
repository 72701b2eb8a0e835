/* idle.h - ranks that cannot take part, because the batch or the stages do not divide among all ranks: the
 * first ranks train, the idle ones wait until rank 0 reports how the run has ended (collectives_end), and
 * exit with its status. session.c calls it.
 *
 * Order:     idle_choose, before the ranks connect. An idle rank then calls only idle_wait; rank 0 calls
 *            collectives_end before it closes its collectives.
 * Errors:    idle_wait: those of collectives_await_end. The training ranks do not notice an idle rank that
 *            exits: its launcher restarts all ranks. */
#ifndef TK_TRAINER_RUN_IDLE_H
#define TK_TRAINER_RUN_IDLE_H

#include "collectives/collectives.h"
#include "trainer/cli/config.h"

struct idle {
    int ranks;               /* number of idle ranks */
    bool self;               /* this rank is idle */
    int exit_code;           /* with `self`: from idle_wait */
    char why[ERR_MSG_BYTES]; /* why they are idle */
};

/* Reduce *ranks to those that train; an idle rank's is unchanged. ERR_TRANSIENT: training this needs more
 * ranks. Configurations that no number of ranks can train are refused later. */
int idle_choose(struct idle *i, const struct config *cfg, struct collectives_config *ranks,
                struct err *err) MUST_CHECK;

/* Wait for the end of the run. Signals have their default action meanwhile. */
int idle_wait(struct idle *i, const struct collectives_config *ranks, int64_t timeout_ms,
              struct err *err) MUST_CHECK;

#endif
