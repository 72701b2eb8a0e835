/* plugin.c - the table that libtk_cuda.so exports, its only symbol. */
#include "trainer/gpu/plugin.h"

#include "collectives/nccl/nccl.h"
#include "kernels/cuda/cuda.h"
#include "trainer/gpu/facts.h"

extern const struct gpu_plugin tk_gpu_plugin;

__attribute__((visibility("default"))) const struct gpu_plugin tk_gpu_plugin = {
    .abi = GPU_PLUGIN_ABI,
    .facts = facts_read,
    .context = cuda_make,
    .nccl_open = nccl_open,
};
