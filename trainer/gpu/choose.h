/* choose.h - decide whether this rank computes on a GPU, and on which one. find.c calls it. Pure.
 *
 * --backend nccl requires a GPU per rank. Otherwise a rank uses a GPU if there is one, shares it if there are
 * more ranks than GPUs, and a GPU that cannot be used gives a note, not an error.
 *
 * Ownership: everything is borrowed for the call.
 * Errors:    ERR_INVALID: the message names the request, the GPUs found, and what to change. */
#ifndef TK_TRAINER_GPU_CHOOSE_H
#define TK_TRAINER_GPU_CHOOSE_H

#include "collectives/collectives.h"
#include "trainer/gpu/plugin.h"

#include <stdbool.h>

enum { GPU_NONE = -1, GPU_CAPABILITY_MIN = 80 }; /* Ampere: the oldest that kernels are compiled for */

struct gpu_request {
    enum collectives_backend backend;
    bool no_cuda;
    int local_rank, local_world;
    const char *visible; /* CUDA_VISIBLE_DEVICES; NULL: not set */
    const char *shared;  /* NCCL_MULTI_RANK_GPU_ENABLE: "1" lets ranks share a GPU */
};

struct gpu_choice {
    int device;     /* CUDA's number, or GPU_NONE */
    int sharers;    /* ranks of this host that may use it, including this one */
    char note[200]; /* why an existing GPU is not used; "": none */
};

/* With ask->no_cuda it does not read `facts`, so CUDA need not be initialised. */
int gpu_choose(const struct gpu_request *ask, const struct gpu_facts *facts, struct gpu_choice *ret,
               struct err *err) MUST_CHECK;

#endif
