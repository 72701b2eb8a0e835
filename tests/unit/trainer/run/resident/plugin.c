/* plugin.c - libtk_cuda.so on FAKE_GPUS (default 1) emulated GPUs. */
#include "trainer/gpu/plugin.h"

#include "collectives/nccl/api.h"
#include "collectives/nccl/nccl.h"
#include "cudart.h"
#include "kernels/cuda/cuda.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

/* The NCCL beside this file, by its path: under AddressSanitizer dlopen does not search the caller's own path. */
static struct device_comm *open_nccl(struct collectives *host, const char *library, int64_t timeout_ms,
                                     struct err *err)
{
    char path[1024];
    Dl_info own;
    const char *slash = dladdr(&tk_gpu_plugin, &own) ? strrchr(own.dli_fname, '/') : NULL;

    if (library || !slash)
        abort();
    snprintf(path, sizeof(path), "%.*s/%s", (int)(slash - own.dli_fname), own.dli_fname, NCCL_API_LIBRARY);
    return nccl_open(host, path, timeout_ms, err);
}

const struct gpu_plugin tk_gpu_plugin = {
    .abi = GPU_PLUGIN_ABI, .facts = facts, .context = cuda_make, .nccl_open = open_nccl};
