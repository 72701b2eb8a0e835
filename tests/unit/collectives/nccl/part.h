/* part.h - a rank's part of a test of the table over NCCL: both tables open, a stream, a body. */
#ifndef TK_TESTS_UNIT_COLLECTIVES_NCCL_PART_H
#define TK_TESTS_UNIT_COLLECTIVES_NCCL_PART_H

#include "collectives/nccl/nccl.h"
#include "fake_nccl.h"
#include "ranks.h"

#include <cuda_runtime_api.h>

struct part {
    int (*body)(struct collectives *c, struct device_comm *d, cudaStream_t stream, const void *arg);
    const void *arg;
    const char *library;
    const char *fault; /* FAKE_NCCL */
    int64_t timeout_ms;
    bool
        stays; /* no rank leaves before all have ended so: who left would be lost to one that did not run meanwhile */
};

/* The folder of the fake libraries, before anything else. */
void part_fakes(const char *folder);

/* A fake library's path, and what was called of it in this process. */
const char *part_library(const char *name);
const struct fake_nccl_counts *part_counts(const char *name);

/* A rank's main, for ranks_start: arg is a struct part. */
int part_main(struct collectives *c, void *arg);

/* Ranks that all succeed, and ranks that all end with exit_code. */
void part_run(int world, struct part p);
void part_run_failing(int world, struct part p, int exit_code);

#endif
