/* api.h - NCCL's functions, loaded at run time, so that a program that does not use NCCL runs without it.
 *
 * Types come from NCCL's own header, so the compiler checks every call against it.
 *
 * Ownership: the library is never unloaded, because its threads go on.
 * Errors:    ERR_INVALID: the library is missing, lacks a required function, is older than NCCL_API_OLDEST, or does not
 *            report its version. The message says what was looked for; *api is not used then.
 */
#ifndef TK_COLLECTIVES_NCCL_API_H
#define TK_COLLECTIVES_NCCL_API_H

#include "common/cleanup.h"
#include "common/err.h"

#include <nccl.h>

#define NCCL_API_LIBRARY "libnccl.so.2"
enum { NCCL_API_OLDEST = NCCL_VERSION(2, 19, 1) }; /* the first version with ncclMemAlloc */

/* X(member, function): required functions. */
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
    X(send, ncclSend)                                                                                        \
    X(recv, ncclRecv)

/* Functions that older libraries lack; the member is then NULL. */
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

/* Fill *api. `library`: a path, or NULL for NCCL_API_LIBRARY on the dynamic linker's search path. */
int nccl_api_load(struct nccl_api *api, const char *library, struct err *err) MUST_CHECK;

#endif
