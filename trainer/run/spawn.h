/* spawn.h - start several ranks with one command (--nprocs): exec the launcher, which starts them. main.c
 * calls it; session.c uses spawn_threads.
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

/* The number of threads of a rank. `omp` is OMP_NUM_THREADS or NULL; of a list ("4,2") the first number is used, as
 * in OpenMP. Without it the pod's ranks share its usable CPUs. Returns 1..max. Pure. */
int spawn_threads(const char *omp, int cpus, int local_world, int max);

/* Exec torchrun with `n` ranks of the same command line without --nprocs. Returns only on failure. */
int spawn_ranks(int n, int argc, char *const *argv, struct err *err) MUST_CHECK;

#endif
