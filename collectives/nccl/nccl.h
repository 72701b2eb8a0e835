/* nccl.h - the table of device.h implemented with NCCL: one communicator over all ranks of a job.
 * trainer/gpu/plugin.c exports it.
 *
 * Rank 0 sends NCCL's unique id to all with the host table's broadcast, so the exchange has that table's deadline
 * and its detection of dead ranks. NCCL_* environment variables are the user's; none is set here.
 *
 * Ownership: `host` is borrowed until the table is closed. The table uses the calling thread's current CUDA
 *            device.
 * Errors:    those of device.h; ERR_INVALID when NCCL is missing, or refuses this set of ranks and GPUs.
 */
#ifndef TK_COLLECTIVES_NCCL_NCCL_H
#define TK_COLLECTIVES_NCCL_NCCL_H

#include "collectives/device.h"

/* Create the table; a collective call of host's ranks. `library`: a path, or NULL for libnccl.so.2. timeout_ms
 * bounds the initialization of the communicator, and later the time that NCCL may take to queue one call. NULL on
 * failure. */
struct device_comm *nccl_open(struct collectives *host, const char *library, int64_t timeout_ms,
                              struct err *err);

#endif
