/* a_gpu.h - for tests that take the folder of libtk_cuda.so as their argument: for emulated GPUs, or for this machine's. */
#ifndef TK_TESTS_UNIT_TRAINER_RUN_RESIDENT_A_GPU_H
#define TK_TESTS_UNIT_TRAINER_RUN_RESIDENT_A_GPU_H

#include "trainer/gpu/find.h"

#include <stdio.h>
#include <stdlib.h>

/* 0: there is one. Else the exit status of a test that finds none, which is reported: 77, or 1 with TK_GPU_REQUIRED. */
static inline int a_gpu(const char *dir, const struct gpu_plugin **ret)
{
    const bool required = getenv("TK_GPU_REQUIRED");
    struct gpu_facts facts = {0};
    struct err err = {0};

    *ret = gpu_plugin_load(dir, &err);
    if (!*ret || (*ret)->facts(&facts, &err)) {
        fprintf(stderr, "%s\n", err.msg);
        return 1;
    }
    if (facts.devices)
        return 0;
    fprintf(stderr, "%s: %s\n", required ? "no GPU to test on" : "skipped", facts.why_none);
    return required ? 1 : 77;
}

#endif
