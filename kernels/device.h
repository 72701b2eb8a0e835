/* device.h - a context's device memory: allocate, copy, queue work, wait.
 *
 * Every buffer that operations read or write lies in device memory. On the CPU that is the process's own, work is done
 * when a call returns, and all this costs nothing; on a GPU it is the card's, and work runs in the order in which it was
 * queued, behind the caller's back.
 *
 * Ownership: device_alloc to device_free with the same context, before kctx_free.
 * Errors:    of a GPU come late: what fails is kept and told by the next device_sync or device_get, ERR_FATAL naming
 *            the operation. Operations behind a failure do nothing that matters.
 * Graphs, marks and streams are in the table alone (ops.h).
 */
#ifndef TK_KERNELS_DEVICE_H
#define TK_KERNELS_DEVICE_H

#include "common/cleanup.h"
#include "common/err.h"
#include "kernels/kctx.h"

struct device_graph;

/* How matrix products of f32 elements are computed. The CPU has f32 alone. */
enum precision { PRECISION_F32, PRECISION_TF32, PRECISION_BF16 };

enum { DEVICE_MARKS = 16 };

/* Device memory is memory of the process. */
bool device_is_host(const struct kctx *ctx);

/* Activations, their gradients and copies of weights are made of these; see kctx.h. Operations whose parameters are all
 * float know nothing of it. */
enum element device_element(const struct kctx *ctx);

/* What computes, for people: "avx512", "NVIDIA H200 (sm_90)". */
const char *device_name(const struct kctx *ctx);

/* Zeroed, aligned to 64 bytes. For set-up, never inside a step. NULL: ERR_FATAL, no memory. */
void *device_alloc(struct kctx *ctx, size_t bytes, struct err *err) MUST_CHECK;
void device_free(struct kctx *ctx, void *p);

/* The same in the process's memory, for free(). */
void *host_zeroed(size_t bytes, struct err *err) MUST_CHECK;

/* From the process's memory, which may be reused at once, and back, when all that was queued before is done. */
void device_put(struct kctx *ctx, void *to, const void *host, size_t bytes);
int device_get(struct kctx *ctx, void *host, const void *from, size_t bytes, struct err *err) MUST_CHECK;

void device_copy(struct kctx *ctx, void *to, const void *from, size_t bytes);
void device_zero(struct kctx *ctx, void *p, size_t bytes);

/* Wait for all that was queued. */
int device_sync(struct kctx *ctx, struct err *err) MUST_CHECK;

/* Zeroed memory of the process that the device reaches too. */
void *device_shared(struct kctx *ctx, size_t bytes, struct err *err) MUST_CHECK;
void device_shared_free(struct kctx *ctx, void *p);

#endif
