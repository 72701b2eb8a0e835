/* find.h - choose a GPU by the command line and the environment; load libtk_cuda.so, the code for NVIDIA
 * GPUs, if there may be one. run/session_device.c calls it.
 *
 * Ownership: a plug-in is never unloaded, because CUDA cannot be unloaded safely.
 * Errors:    gpu_plugin_load: ERR_NOT_FOUND (this build or image has none), ERR_INVALID (it belongs to another build, or cannot
 *            be loaded here); the message has the path. gpu_find: ERR_INVALID as in choose.h; with --backend
 *            nccl also those of gpu_plugin_load. */
#ifndef TK_TRAINER_GPU_FIND_H
#define TK_TRAINER_GPU_FIND_H

#include "trainer/gpu/choose.h"

#define GPU_PLUGIN_FILE "libtk_cuda.so"

/* `dir`: where to look; NULL: the program's own folder, then ../lib/torchkeeper beside it. NULL on failure. */
const struct gpu_plugin *gpu_plugin_load(const char *dir, struct err *err);

struct gpu_where {
    const char *dir; /* of the plug-in, as gpu_plugin_load takes it */
    const char *dev; /* "/dev": the folder with the driver's devices; NULL: there are none */
};

/* *plugin: NULL if no device was chosen. Without a driver, and without --backend nccl, it loads nothing. */
int gpu_find(const struct gpu_request *ask, const struct gpu_where *where, const struct gpu_plugin **plugin,
             struct gpu_choice *ret, struct err *err) MUST_CHECK;

#endif
