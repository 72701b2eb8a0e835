/* plugin.h - the table of functions that libtk_cuda.so exports. All code that needs NVIDIA's headers or
 * libraries is in that library, so the trainer itself needs none of them and starts quickly.
 *
 * Ownership: the table is valid until the program ends.
 * Threads:   the functions may be called by any thread; a device's own rules are with its headers.
 * Errors:    ERR_INVALID if the user can fix it, else ERR_FATAL; the message names what failed. */
#ifndef TK_TRAINER_GPU_PLUGIN_H
#define TK_TRAINER_GPU_PLUGIN_H

#include "common/cleanup.h"
#include "common/err.h"
#include "kernels/device.h"

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Changes with each change of the shared tables and structs: both sides are built together. */
enum { GPU_PLUGIN_ABI = 6 };
#define GPU_PLUGIN_SYMBOL "tk_gpu_plugin"

enum { GPU_DEVICES_MAX = 64 };

/* This machine's GPUs, as CUDA sees them with CUDA_VISIBLE_DEVICES. Versions are CUDA's: 13050 is 13.5. */
struct gpu_facts {
    int devices;                     /* 0: none; why_none has the reason */
    int driver;                      /* the newest CUDA version that the driver supports; 0: no driver */
    int runtime;                     /* the CUDA version that the plug-in was built with */
    int capability[GPU_DEVICES_MAX]; /* of each device: 90 is 9.0 */
    char why_none[120];              /* CUDA's message */
};

struct collectives;
struct device_comm;

struct gpu_plugin {
    uint32_t abi;
    /* Fails only if CUDA's runtime fails; to have no device is not an error. */
    int (*facts)(struct gpu_facts *ret, struct err *err) MUST_CHECK;
    /* Create a context on that device, which becomes this thread's current one; kctx_free ends it. */
    struct kctx *(*context)(int device, enum precision precision, enum element element, struct err *err);
    /* Collectives over NCCL on this thread's current device: collectives/nccl/nccl.h. Only for several ranks. */
    struct device_comm *(*nccl_open)(struct collectives *host, const char *library, int64_t timeout_ms,
                                     struct err *err);
};

#ifdef __cplusplus
}
#endif

#endif
