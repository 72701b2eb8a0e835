/* spawn.h - start several ranks with one command (--nprocs): exec the launcher, which starts them. main.c
 * calls it.
 *
 * A preset that replaces a program with --nprocs keeps that option. The launcher is the torchrun in this
 * program's folder.
 *
 * Errors: ERR_INVALID (--nprocs under a launcher), ERR_NOT_FOUND (no torchrun), ERR_FATAL.
 */
#ifndef TK_TRAINER_RUN_SPAWN_H
#define TK_TRAINER_RUN_SPAWN_H

#include "common/cleanup.h"
#include "common/err.h"
#include "trainer/cli/config.h"

/* *ret: the number of ranks to start; 1 or less: this process trains. `get` is getenv, `dev` the folder of
 * devices ("/dev"). */
int spawn_count(const struct config *cfg, char *(*get)(const char *name), const char *dev, int *ret,
                struct err *err) MUST_CHECK;

/* Exec torchrun with `n` ranks of the same command line without --nprocs. Returns only on failure. */
int spawn_ranks(int n, int argc, char *const *argv, struct err *err) MUST_CHECK;

#endif
