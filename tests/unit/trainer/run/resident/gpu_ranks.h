/* gpu_ranks.h - whole runs of a small net, or a GPT-2, by one rank or several, on GPUs that are there or are none.
 *
 *   PROGRAM emulated FOLDER   on emulated GPUs and a fake NCCL, both in FOLDER
 *   PROGRAM gpu FOLDER        on this machine's: libtk_cuda.so in FOLDER; ranks may share one GPU. Without a GPU it is
 *                             skipped (77); TK_GPU_REQUIRED makes that a failure
 */
#ifndef TK_TESTS_UNIT_TRAINER_RUN_RESIDENT_GPU_RANKS_H
#define TK_TESTS_UNIT_TRAINER_RUN_RESIDENT_GPU_RANKS_H

#include "collectives/collectives.h"
#include "trainer/gpu/find.h"
#include "trainer/small_data.h"

#include <stdio.h>
#include <sys/types.h>

enum { GPU_RANKS = 2, GPU_RANKS_MAX = 4, GPU_RANKS_LOSSES = 64, GPU_RANKS_BATCH = 24 /* of all ranks */ };

/* Deadlines: where one is what ends a run (a pretend GPU may take a second for a step, and real libraries some to be loaded and
 * to meet), and where it is not. */
enum { GPU_RANKS_SOON_S = 5, GPU_RANKS_SOON_ON_A_GPU_S = 20, GPU_RANKS_LATE_S = 600 };

/* What the runs of a test program find. */
extern struct gpu_ranks_machine {
    bool emulated;
    struct gpu_where gpu;
    char data[SMALL_DATA_DIR_BYTES];
} gpu_ranks;

struct gpu_ranks_task {
    enum collectives_backend backend;
    int world;
    bool no_cuda, second_on_cpu; /* second: rank 1 */
    const char *model;           /* YAML; NULL: a small net */
    bool sequences;              /* a GPT-2 instead: micro-batches, a bounded norm, evaluations on the way */
    int64_t log_interval;        /* 0: evaluations alone, and steps are not waited for */
    int64_t epochs;
    int64_t timeout_s;
    double bucket_mb; /* 0: the default, more than these nets have */
    bool early;       /* FAKE_STREAMS */
    int64_t max_steps;
    bool bf16;
    double clip; /* 0: the model's */
    const char *
        checkpoints; /* a folder: one is written at the end, and what lies there is resumed from; NULL: none */
    const char *fault; /* FAKE_NCCL */
    const char *init_from, *save_path;
};

struct gpu_ranks {
    int world;
    pid_t pid[GPU_RANKS_MAX];
    FILE *out; /* rank 0's */
};

/* Forked: nothing of CUDA may be used in the process that tests. */
struct gpu_ranks gpu_ranks_start(const struct gpu_ranks_task *t);

/* To the end of rank 0's output. */
void gpu_ranks_read(struct gpu_ranks *r);

/* Its exit status; 128 + n for signal n, as the launcher counts. */
int gpu_ranks_ended(pid_t pid);

/* All that is called a loss, in the order of the lines; every rank ends well. */
struct gpu_ranks_shown {
    double loss[GPU_RANKS_LOSSES];
    int n;
    bool on_gpu;
};
struct gpu_ranks_shown gpu_ranks_shown_by(const struct gpu_ranks_task *t);

/* What was shown is the same, but for so small a share; and of what a task shows. */
void gpu_ranks_check_shown(const struct gpu_ranks_shown *want, const struct gpu_ranks_shown *got,
                           double share, const char *what);
void gpu_ranks_check_within(const struct gpu_ranks_shown *want, const struct gpu_ranks_task *t, double share,
                            const char *what);

/* So many ranks on GPUs, over NCCL and over gloo, and one alone, show what one on the CPU does: `least` losses at least, which it returns. */
struct gpu_ranks_shown gpu_ranks_check_ways(struct gpu_ranks_task t, int world, int least, const char *what);

/* Rank 1 meets a signal when rank 0 has shown its fourth step: all is recorded, and the run is far from its end. The others end
 * with exit_code; of several at a deadline one, who may take the rest along. */
void gpu_ranks_check_signal(struct gpu_ranks_task t, int signal, int exit_code);

/* It is killed and stopped over NCCL, and killed over gloo. */
void gpu_ranks_check_lost(struct gpu_ranks_task t);

/* From a program's arguments; 0: there are GPUs, else its exit status. And the set-up and tear-down of its tests. */
int gpu_ranks_find(int argc, char **argv);
int gpu_ranks_make(void **state);
int gpu_ranks_unmake(void **state);

#endif
