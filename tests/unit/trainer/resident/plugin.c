/* plugin.c - libtk_cuda.so on GPUs that are none, as many as FAKE_GPUS says (1). */
#include "trainer/gpu/plugin.h"

#include "cudart.h"
#include "kernels/cuda/cuda.h"
#include "trainer/collectives/nccl/nccl.h"

#include <stdlib.h>

static int facts(struct gpu_facts *ret, struct err *err)
{
    const char *gpus = getenv("FAKE_GPUS");

    (void)err;
    *ret = (struct gpu_facts){.devices = gpus ? atoi(gpus) : 1, .driver = 13000, .runtime = 13000};
    for (int d = 0; d < FAKE_CUDART_DEVICES; d++)
        ret->capability[d] = 90;
    return 0;
}

extern const struct gpu_plugin tk_gpu_plugin;

const struct gpu_plugin tk_gpu_plugin = {
    .abi = GPU_PLUGIN_ABI, .facts = facts, .context = cuda_make, .nccl_open = nccl_open};
