/* api.h - NCCL's functions, found when they are needed: a program that never asks for NCCL need not have it.
 *
 * Types come from NCCL's own header, so that the compiler checks every call against it.
 *
 * Ownership: the library stays loaded: it keeps threads of its own.
 * Errors:    ERR_INVALID: not there, too old, or something of it missing; the message says what was looked for.
 */
#ifndef TK_COLLECTIVES_NCCL_API_H
#define TK_COLLECTIVES_NCCL_API_H

#include "common/cleanup.h"
#include "common/err.h"

#include <nccl.h>

#define NCCL_API_LIBRARY "libnccl.so.2"
enum { NCCL_API_OLDEST = NCCL_VERSION(2, 19, 1) }; /* the first with memory of its own (ncclMemAlloc) */

/* X(member, function) */
#define NCCL_API_NEEDED(X)                                                                                   \
    X(get_version, ncclGetVersion)                                                                           \
    X(get_unique_id, ncclGetUniqueId)                                                                        \
    X(init_rank_config, ncclCommInitRankConfig)                                                              \
    X(get_async_error, ncclCommGetAsyncError)                                                                \
    X(get_error_string, ncclGetErrorString)                                                                  \
    X(get_last_error, ncclGetLastError)                                                                      \
    X(finalize, ncclCommFinalize)                                                                            \
    X(destroy, ncclCommDestroy)                                                                              \
    X(abort, ncclCommAbort)                                                                                  \
    X(mem_alloc, ncclMemAlloc)                                                                               \
    X(mem_free, ncclMemFree)                                                                                 \
    X(comm_register, ncclCommRegister)                                                                       \
    X(comm_deregister, ncclCommDeregister)                                                                   \
    X(all_reduce, ncclAllReduce)                                                                             \
    X(all_gather, ncclAllGather)                                                                             \
    X(reduce_scatter, ncclReduceScatter)                                                                     \
    X(broadcast, ncclBroadcast)                                                                              \
    X(send, ncclSend)                                                                                        \
    X(recv, ncclRecv)

/* Absent from older libraries: NULL then. */
#define NCCL_API_WANTED(X)                                                                                   \
    X(window_register, ncclCommWindowRegister)                                                               \
    X(window_deregister, ncclCommWindowDeregister)

struct nccl_api {
    int version; /* NCCL's code: 23203 is 2.32.3 */
#define X(member, function) __typeof__(&(function)) member;
    NCCL_API_NEEDED(X)
    NCCL_API_WANTED(X)
#undef X
};

/* `library`: a path, or NULL for NCCL_API_LIBRARY where the linker looks. */
int nccl_api_load(struct nccl_api *api, const char *library, struct err *err) MUST_CHECK;

#endif
