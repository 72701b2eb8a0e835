/* run.h - execute a whole training run: connect to the other ranks, load data, train, evaluate, save.
 *
 * Ownership: everything in struct run_env is borrowed for the call.
 * Errors:    the message of what failed; the exit code by common/contract.h: 1 permanent, 2 configuration or
 *            data that cannot be used, 138 a deadline passed or the machine lacks
 *            memory and the like for now, 140 another rank went away.
 */
#ifndef TK_TRAINER_RUN_RUN_H
#define TK_TRAINER_RUN_RUN_H

#include "trainer/cli/config.h"
#include "trainer/run/run_env.h"

/* 0 or -1; *ret is filled in both cases. */
int run(const struct config *cfg, const struct run_env *env, struct run_result *ret, struct err *err);

#endif
