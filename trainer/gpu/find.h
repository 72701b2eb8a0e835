/* find.h - from the command line and the environment to a GPU: loads the plug-in when there may be one to use.
 *
 * Errors: ERR_INVALID, as choose.h says; and for --backend nccl what load.h says.
 */
#ifndef TK_TRAINER_GPU_FIND_H
#define TK_TRAINER_GPU_FIND_H

#include "trainer/gpu/choose.h"

struct gpu_where {
    const char *dir; /* of the plug-in, as gpu_plugin_load takes it */
    const char *dev; /* "/dev": where a driver's devices show; NULL: nowhere, there are none */
};

/* *plugin: NULL when no device was chosen. Costs nothing on a machine without a driver, nccl aside. */
int gpu_find(const struct gpu_ask *ask, const struct gpu_where *where, const struct gpu_plugin **plugin,
             struct gpu_choice *ret, struct err *err) MUST_CHECK;

#endif
