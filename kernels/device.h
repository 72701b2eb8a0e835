/* device.h - a context's device memory: allocate, copy, queue work, wait.
 *
 * Every buffer that operations read or write lies in device memory. On the CPU that is the process's own, work is done
 * when a call returns, and all this costs nothing; on a GPU it is the card's, and work runs in the order in which it was
 * queued, behind the caller's back.
 *
 * Ownership: device_alloc to device_free with the same context, before kctx_free.
 * Errors:    of a GPU come late: what fails is kept and told by the next device_sync or device_get, ERR_FATAL naming
 *            the operation. Operations behind a failure do nothing that matters.
 * Graphs:    what is queued between device_graph_begin and device_graph_end is recorded, not done; device_graph_launch
 *            does it again and again, for less. Addresses and sizes are those of the recording. On the CPU there are no
 *            graphs: device_graph_begin and what stands behind it may be called only where
 *            device_is_host is false.
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
bool device_has_graphs(const struct kctx *ctx);

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

/* Bytes that device_alloc can still give, to all processes together. SIZE_MAX on the CPU. */
size_t device_room(struct kctx *ctx);

/* From the process's memory, which may be reused at once, and back, when all that was queued before is done. */
void device_put(struct kctx *ctx, void *to, const void *host, size_t bytes);
int device_get(struct kctx *ctx, void *host, const void *from, size_t bytes, struct err *err) MUST_CHECK;

void device_copy(struct kctx *ctx, void *to, const void *from, size_t bytes);
void device_zero(struct kctx *ctx, void *p, size_t bytes);

/* Wait for all that was queued. */
int device_sync(struct kctx *ctx, struct err *err) MUST_CHECK;

int device_graph_begin(struct kctx *ctx, struct err *err) MUST_CHECK;
struct device_graph *device_graph_end(struct kctx *ctx, struct err *err) MUST_CHECK;
int device_graph_launch(struct kctx *ctx, struct device_graph *graph, struct err *err) MUST_CHECK;
void device_graph_free(struct kctx *ctx, struct device_graph *graph); /* before what was recorded goes away */

/* Zeroed memory of the process that the device reaches too. */
void *device_shared(struct kctx *ctx, size_t bytes, struct err *err) MUST_CHECK;
void device_shared_free(struct kctx *ctx, void *p);

/* Mark i (0..DEVICE_MARKS-1) stands behind all that is queued now; device_wait returns when that is done. */
void device_mark(struct kctx *ctx, int i);
int device_wait(struct kctx *ctx, int i, struct err *err) MUST_CHECK;

/* CUDA's own names of mark i and of the queue, for collectives: a cudaEvent_t, a cudaStream_t. */
void *device_mark_event(struct kctx *ctx, int i);
void *device_stream(struct kctx *ctx);

/* A second queue, for what may go on beside the first: a stream of a higher priority. device_fork: what is queued there from
 * now on runs behind all that the first holds now; device_join: the first goes on when the second is done. Where one is
 * recorded the other is, too, between a fork and the join behind it, without which the recording fails. */
void device_fork(struct kctx *ctx);
void device_join(struct kctx *ctx);
void *device_side_stream(struct kctx *ctx);

#endif
