/* load.h - finding and opening libtk_cuda.so, the code for NVIDIA GPUs.
 *
 * Ownership: a loaded plug-in stays loaded: CUDA cannot be unloaded safely.
 * Errors:    ERR_NOT_FOUND (this build or image has none), ERR_INVALID (it belongs to another build, or cannot be
 *            loaded here); the message says where it was expected.
 */
#ifndef TK_TRAINER_GPU_LOAD_H
#define TK_TRAINER_GPU_LOAD_H

#include "trainer/gpu/plugin.h"

#define GPU_PLUGIN_FILE "libtk_cuda.so"

/* `dir`: where to look; NULL: the program's own folder, then ../lib/torchkeeper beside it. NULL on failure. */
const struct gpu_plugin *gpu_plugin_load(const char *dir, struct err *err);

#endif
