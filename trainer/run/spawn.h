/* spawn.h - start several ranks from one command (--nprocs): exec the launcher, which starts them.
 *
 * Presets that replace programs which spawn their own processes keep that command line. The launcher is the torchrun
 * beside this program.
 *
 * Errors: ERR_INVALID (--nprocs under a launcher), ERR_NOT_FOUND (no torchrun), ERR_FATAL.
 */
#ifndef TK_TRAINER_RUN_SPAWN_H
#define TK_TRAINER_RUN_SPAWN_H

#include "common/cleanup.h"
#include "common/err.h"
#include "trainer/cli/config.h"

/* How many ranks to start; 1 or less: none, this process trains. `get` is getenv, `dev` holds the devices ("/dev"). */
int spawn_count(const struct config *cfg, char *(*get)(const char *name), const char *dev, int *ret,
                struct err *err) MUST_CHECK;

/* Exec torchrun with `n` ranks of the same command line without --nprocs. Returns only on failure. */
int spawn_ranks(int n, int argc, char *const *argv, struct err *err) MUST_CHECK;

#endif
