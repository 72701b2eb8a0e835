/* load.c - open libtk_cuda.so, the plug-in that holds all code for GPUs. */
#include "trainer/gpu/load.h"

#include "common/plugin.h"

const struct gpu_plugin *gpu_plugin_load(const char *dir, struct err *err)
{
    static const struct plugin p = {
        .what = "GPU support", .file = GPU_PLUGIN_FILE, .symbol = GPU_PLUGIN_SYMBOL, .abi = GPU_PLUGIN_ABI};

    return plugin_load(&p, dir, err);
}
