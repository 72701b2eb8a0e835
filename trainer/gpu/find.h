/* find.h - from the command line and the environment to a GPU: opens libtk_cuda.so, the code for NVIDIA GPUs, when there may be one to
 * use.
 *
 * Ownership: a loaded plug-in stays loaded: CUDA cannot be unloaded safely.
 * Errors:    gpu_plugin_load: ERR_NOT_FOUND (this build or image has none), ERR_INVALID (it belongs to another build, or cannot
 *            be loaded here); the message says where it was expected. gpu_find: ERR_INVALID, as choose.h says; and for
 *            --backend nccl those.
 */
#ifndef TK_TRAINER_GPU_FIND_H
#define TK_TRAINER_GPU_FIND_H

#include "trainer/gpu/choose.h"

#define GPU_PLUGIN_FILE "libtk_cuda.so"

/* `dir`: where to look; NULL: the program's own folder, then ../lib/torchkeeper beside it. NULL on failure. */
const struct gpu_plugin *gpu_plugin_load(const char *dir, struct err *err);

struct gpu_where {
    const char *dir; /* of the plug-in, as gpu_plugin_load takes it */
    const char *dev; /* "/dev": where a driver's devices show; NULL: nowhere, there are none */
};

/* *plugin: NULL when no device was chosen. Costs nothing on a machine without a driver, nccl aside. */
int gpu_find(const struct gpu_ask *ask, const struct gpu_where *where, const struct gpu_plugin **plugin,
             struct gpu_choice *ret, struct err *err) MUST_CHECK;

#endif
