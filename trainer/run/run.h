/* run.h - execute a training run: connect to the other ranks, load data, train, evaluate, save. main.c calls
 * it.
 *
 * Ownership: everything in struct run_env is borrowed for the call.
 * Errors:    *err names what failed. Exit codes (common/contract.h): 1 permanent; 2 unusable configuration or
 *            data; 138 a deadline passed, or the machine lacks memory or other resources for now; 140 another
 *            rank went away.
 */
#ifndef TK_TRAINER_RUN_RUN_H
#define TK_TRAINER_RUN_RUN_H

#include "common/clock.h"
#include "trainer/cli/config.h"
#include "trainer/gpu/find.h"
#include "trainer/run/stop.h"

#include <stdio.h>

struct run_result;

struct run_env {
    char *(*get)(const char *name); /* getenv, or a test's own */
    struct clock clock;
    int64_t started_ms; /* clock.mono_ms when the program began */
    FILE *out;
    FILE *bar; /* terminal for rank 0's progress bar; NULL: none */
    struct gpu_where
        gpu; /* in the program: {.dev = "/dev"}; zeros: no GPU, unless --backend nccl requires one */
    /* Called when the run has failed, before it waits for its checkpoint writer. NULL: none. */
    void (*failed)(const struct run_env *env, const struct run_result *result, const struct err *err);
    struct stop *
        stop; /* initially closed; opened when the ranks are connected, closed by its owner. NULL: default signals */
};

struct run_result {
    int exit_code; /* also on success: 0, or 143 and 130 after a signal */
    int rank;      /* for the message; -1 before it is known */
    struct err
        warning; /* kind ERR_NONE: none. Something that did not end the run, such as a full disk of log_dir */
    bool
        device_lost; /* a GPU hangs, or its work waits for a lost rank: the caller must use _exit, since the driver's exit
                         handlers may never return */
};

/* 0 or -1; *ret is filled in both cases. */
int run(const struct config *cfg, const struct run_env *env, struct run_result *ret, struct err *err);

#endif
