/* nccl.h - the table of device.h over NCCL: one communicator for a whole job.
 *
 * The unique id goes from rank 0 to all by the host table's broadcast: that has met by way of the rendezvous store
 * already, with its deadline and its news of dead ranks. NCCL_* variables are the user's; none is set here.
 *
 * Ownership: `host` is borrowed until the table is closed. The calling thread's current device is the one that is used.
 * Errors:    those of device.h; ERR_INVALID when NCCL is missing or refuses this set of ranks and GPUs.
 */
#ifndef TK_COLLECTIVES_NCCL_NCCL_H
#define TK_COLLECTIVES_NCCL_NCCL_H

#include "collectives/device.h"

/* A collective call of host's ranks. `library`: a path, NULL for libnccl.so.2; timeout_ms bounds the meeting, and later
 * how long NCCL may take to queue what it is given. NULL on failure. */
struct device_comm *nccl_open(struct collectives *host, const char *library, int64_t timeout_ms,
                              struct err *err);

#endif
