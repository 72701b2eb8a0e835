/* spawn.h - ranks for a preset that was started alone: the launcher takes this process's place and starts them.
 *
 * Programs that spawn their own processes keep doing so under their old command line. What starts, watches and stops
 * ranks is torchrun, which lies beside this program; there is no second such thing here.
 *
 * Errors: ERR_INVALID (--nprocs under a launcher), ERR_NOT_FOUND (no torchrun), ERR_FATAL.
 */
#ifndef TK_TRAINER_RUN_SPAWN_H
#define TK_TRAINER_RUN_SPAWN_H

#include "common/cleanup.h"
#include "common/err.h"
#include "trainer/cli/config.h"

/* Ranks to start: 1 or less is none, this process trains. `get` is getenv, `dev` holds the devices ("/dev"). */
int spawn_count(const struct config *cfg, char *(*get)(const char *name), const char *dev, int *ret,
                struct err *err) MUST_CHECK;

/* Become torchrun with `n` ranks of the same command line, --nprocs left out. Returns on failure alone. */
int spawn_ranks(int n, int argc, char *const *argv, struct err *err) MUST_CHECK;

#endif
