/* run_env.h - what a run is given besides its configuration, and what it leaves. */
#ifndef TK_TRAINER_RUN_RUN_ENV_H
#define TK_TRAINER_RUN_RUN_ENV_H

#include "common/clock.h"
#include "common/err.h"
#include "trainer/gpu/find.h"
#include "trainer/run/stop.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct run_result;

struct run_env {
    char *(*get)(const char *name); /* getenv, or a test's own */
    struct clock clock;
    int64_t started_ms; /* clock.mono_ms when the program began */
    FILE *out;
    FILE *bar; /* where rank 0 shows how far it is: a terminal; NULL: nowhere */
    struct gpu_where
        gpu; /* a program's: {.dev = "/dev"}; zeros: no GPU, unless --backend nccl asks for one */
    /* Called when the run has failed, before it waits for a checkpoint that is being written. NULL: not. */
    void (*failed)(const struct run_env *env, const struct run_result *result, const struct err *err);
    struct stop
        *stop; /* closed; opened when the ranks have met, closed by its owner. NULL: signals as they are */
};

struct run_result {
    int exit_code; /* also on success: 0, or 143 and 130 after a signal */
    int rank;      /* for the message; -1 before it is known */
    struct err
        warning; /* kind ERR_NONE: none. Something that did not end the run, such as a full disk of log_dir */
    bool
        device_lost; /* a GPU hangs, or its work waits for a lost rank: the caller must end by _exit, since the
                         driver's exit handlers may never return */
};

#endif
