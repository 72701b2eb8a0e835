/* gpu_ranks.h - whole runs of a small net, or a GPT-2, by one rank or two, on GPUs that are there or are none. */
#ifndef TK_TESTS_TRAINER_GPU_RANKS_H
#define TK_TESTS_TRAINER_GPU_RANKS_H

#include "trainer/collectives/collectives.h"
#include "trainer/gpu/find.h"
#include "trainer/small_data.h"

#include <stdio.h>
#include <sys/types.h>

enum { GPU_RANKS = 2, GPU_RANKS_BATCH = 24 /* of all ranks */ };

/* What the runs of a test program find. */
extern struct gpu_ranks_machine {
    bool emulated;
    struct gpu_where gpu;
    char data[SMALL_DATA_DIR_BYTES];
} gpu_ranks;

struct gpu_ranks_task {
    enum collectives_backend backend;
    int world;
    bool no_cuda;
    bool sequences;       /* a GPT-2 instead: micro-batches, a bounded norm, evaluations on the way */
    int64_t log_interval; /* 0: evaluations alone, and steps are not waited for */
    int64_t epochs;
    int64_t timeout_s;
    double bucket_mb; /* 0: the default, more than these nets have */
    bool early;       /* FAKE_STREAMS */
    bool bf16;
    const char *fault; /* FAKE_NCCL */
    const char *init_from, *save_path;
};

struct gpu_ranks {
    int world;
    pid_t pid[GPU_RANKS];
    FILE *out; /* rank 0's */
};

/* Forked: nothing of CUDA may be used in the process that tests. */
struct gpu_ranks gpu_ranks_start(const struct gpu_ranks_task *t);

/* To the end of what rank 0 says. */
void gpu_ranks_read(struct gpu_ranks *r);

/* Its exit status; 128 + n for signal n, as the launcher counts. */
int gpu_ranks_ended(pid_t pid);

#endif
