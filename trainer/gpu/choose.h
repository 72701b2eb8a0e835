/* choose.h - does this rank compute on a GPU, and on which? Pure: facts in, a choice or one clear line out.
 *
 * --backend nccl asks for a GPU of its own for every rank, and fails without. Otherwise a GPU is taken when there is one,
 * shared when there are more ranks than GPUs, and a GPU that cannot be used is a note, not a failure.
 *
 * Ownership: everything is borrowed for the call.
 * Errors:    ERR_INVALID: the line names what was asked, what there is, and what would do.
 */
#ifndef TK_TRAINER_GPU_CHOOSE_H
#define TK_TRAINER_GPU_CHOOSE_H

#include "collectives/collectives.h"
#include "trainer/gpu/plugin.h"

#include <stdbool.h>

enum { GPU_NONE = -1, GPU_CAPABILITY_MIN = 80 }; /* Ampere: the oldest that kernels are compiled for */

struct gpu_ask {
    enum collectives_backend backend;
    bool no_cuda;
    int local_rank, local_world;
    const char *visible; /* CUDA_VISIBLE_DEVICES; NULL: not set */
    const char *shared;  /* NCCL_MULTI_RANK_GPU_ENABLE: "1" lets ranks share a GPU */
};

struct gpu_choice {
    int device;     /* CUDA's number, or GPU_NONE */
    int sharers;    /* ranks of this host that may be on it, this one included */
    char note[200]; /* why a GPU that is there is not used; "": nothing to tell */
};

/* `facts` are not read with ask->no_cuda: CUDA need not be started. */
int gpu_choose(const struct gpu_ask *ask, const struct gpu_facts *facts, struct gpu_choice *ret,
               struct err *err) MUST_CHECK;

#endif
