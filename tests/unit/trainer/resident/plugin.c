/* plugin.c - libtk_cuda.so on a GPU that is none. */
#include "trainer/gpu/plugin.h"
#include "kernels/cuda/cuda.h"

static int facts(struct gpu_facts *ret, struct err *err)
{
    (void)err;
    *ret = (struct gpu_facts){.devices = 1, .driver = 13000, .runtime = 13000, .capability = {90}};
    return 0;
}

extern const struct gpu_plugin tk_gpu_plugin;

const struct gpu_plugin tk_gpu_plugin = {.abi = GPU_PLUGIN_ABI, .facts = facts, .context = cuda_make};
