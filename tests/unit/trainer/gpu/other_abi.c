/* other_abi.c - a plug-in whose table is another one. */
#include "trainer/gpu/plugin.h"

extern const struct gpu_plugin tk_gpu_plugin;
const struct gpu_plugin tk_gpu_plugin = {.abi = GPU_PLUGIN_ABI + 1};
