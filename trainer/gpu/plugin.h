/* plugin.h - what the trainer asks of libtk_cuda.so, a table: all code that needs NVIDIA's headers or libraries is
 * behind it, so that the trainer itself needs none of them and starts as quickly without.
 *
 * Ownership: the table lives as long as the program.
 * Threads:   the functions may be called by any thread; a device's own rules are with its headers.
 * Errors:    ERR_INVALID for what the user can mend, ERR_FATAL for the rest; the message names what failed.
 */
#ifndef TK_TRAINER_GPU_PLUGIN_H
#define TK_TRAINER_GPU_PLUGIN_H

#include "common/cleanup.h"
#include "common/err.h"
#include "kernels/device.h"

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Changes with every change of the tables and structs that cross over: both sides are built together. */
enum { GPU_PLUGIN_ABI = 4 };
#define GPU_PLUGIN_SYMBOL "tk_gpu_plugin"

enum { GPU_DEVICES_MAX = 64 };

/* What there is on this machine, as CUDA sees it: CUDA_VISIBLE_DEVICES counts. Versions are CUDA's: 13050 is 13.5. */
struct gpu_facts {
    int devices;                     /* 0 without any; why_none then says why */
    int driver;                      /* the newest CUDA that the driver serves; 0: no driver */
    int runtime;                     /* what the plug-in was built with */
    int capability[GPU_DEVICES_MAX]; /* of each device: 90 is 9.0 */
    char why_none[120];              /* CUDA's own words */
};

struct collectives;
struct device_comm;

struct gpu_plugin {
    uint32_t abi;
    /* Fails only when the runtime itself does; no device is a fact, not an error. */
    int (*facts)(struct gpu_facts *ret, struct err *err) MUST_CHECK;
    /* A context on that device, which becomes this thread's current one; ended by kctx_free. */
    struct kctx *(*context)(int device, enum precision precision, enum element element, struct err *err);
    /* Collectives over NCCL on this thread's current device: collectives/nccl/nccl.h. Only for several ranks. */
    struct device_comm *(*nccl_open)(struct collectives *host, const char *library, int64_t timeout_ms,
                                     struct err *err);
};

#ifdef __cplusplus
}
#endif

#endif
