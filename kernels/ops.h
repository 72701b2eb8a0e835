/* ops.h - the table of operations that a device implements; every context carries one.
 *
 * <op>.h says of each operation what it does and declares its type, <op>_op. A device implements it once, under its own
 * prefix (cpu_, cuda_). Layers, model and training call ctx->ops-><op>(ctx, ...); for memory there are the functions of device.h.
 */
#ifndef TK_KERNELS_OPS_H
#define TK_KERNELS_OPS_H

#include "kernels/add.h"
#include "kernels/attention.h"
#include "kernels/batchnorm.h"
#include "kernels/classifier.h"
#include "kernels/conv2d.h"
#include "kernels/cross_entropy.h"
#include "kernels/device.h"
#include "kernels/dropout.h"
#include "kernels/embedding.h"
#include "kernels/flatten.h"
#include "kernels/gelu.h"
#include "kernels/layernorm.h"
#include "kernels/linear.h"
#include "kernels/mse.h"
#include "kernels/pool2d.h"
#include "kernels/queued.h"
#include "kernels/reduce.h"
#include "kernels/relu.h"
#include "kernels/softmax.h"
#include "kernels/update.h"

/* X(name) for every operation of layers. */
#define KERNEL_OPS(X)                                                                                        \
    X(linear_forward)                                                                                        \
    X(linear_backward)                                                                                       \
    X(linear_gelu_forward)                                                                                   \
    X(gelu_linear_backward)                                                                                  \
    X(conv2d_forward)                                                                                        \
    X(conv2d_backward)                                                                                       \
    X(maxpool2d_forward)                                                                                     \
    X(maxpool2d_backward)                                                                                    \
    X(avgpool2d_forward)                                                                                     \
    X(avgpool2d_backward)                                                                                    \
    X(relu_forward)                                                                                          \
    X(relu_backward)                                                                                         \
    X(gelu_forward)                                                                                          \
    X(gelu_backward)                                                                                         \
    X(softmax_forward)                                                                                       \
    X(softmax_backward)                                                                                      \
    X(dropout_forward)                                                                                       \
    X(dropout_backward)                                                                                      \
    X(batchnorm_forward)                                                                                     \
    X(batchnorm_backward)                                                                                    \
    X(layernorm_forward)                                                                                     \
    X(layernorm_backward)                                                                                    \
    X(flatten_forward)                                                                                       \
    X(flatten_backward)                                                                                      \
    X(add)                                                                                                   \
    X(attention_forward)                                                                                     \
    X(attention_backward)                                                                                    \
    X(embedding_forward)                                                                                     \
    X(embedding_backward)

/* Of losses and optimizers: X(name) for those that only a device has whose memory is the process's; */
#define KERNEL_HOST_OPS(X)                                                                                   \
    X(cross_entropy)                                                                                         \
    X(mse)                                                                                                   \
    X(classifier)                                                                                            \
    X(update_step)                                                                                           \
    X(reduce_squares)                                                                                        \
    X(reduce_scale)

/* and for those that only a device with graphs has. */
#define KERNEL_QUEUED(X)                                                                                     \
    X(queue_cross_entropy)                                                                                   \
    X(queue_classifier)                                                                                      \
    X(queue_mse)                                                                                             \
    X(queue_gather)                                                                                          \
    X(queue_windows)                                                                                         \
    X(queue_accumulate)                                                                                      \
    X(queue_squares)                                                                                         \
    X(queue_bound)                                                                                           \
    X(queue_step_begin)                                                                                      \
    X(queue_step_advance)                                                                                    \
    X(queue_step_end)                                                                                        \
    X(queue_round)                                                                                           \
    X(queue_update)                                                                                          \
    X(queue_count)

struct kernel_ops {
    bool host; /* device memory is the process's */
    const char *(*name)(const struct kctx *ctx);
    void (*free)(struct kctx *ctx);
    int (*reserve)(struct kctx *ctx, size_t bytes, struct err *err);

    /* device.h */
    void *(*alloc)(struct kctx *ctx, size_t bytes, struct err *err);
    void (*release)(struct kctx *ctx, void *p);
    size_t (*room)(struct kctx *ctx); /* bytes that alloc can still give, to all processes together */
    void (*put)(struct kctx *ctx, void *to, const void *host, size_t bytes);
    int (*get)(struct kctx *ctx, void *host, const void *from, size_t bytes, struct err *err);
    void (*copy)(struct kctx *ctx, void *to, const void *from, size_t bytes);
    void (*zero)(struct kctx *ctx, void *p, size_t bytes);
    int (*sync)(struct kctx *ctx, struct err *err);

    /* Graphs, marks, shared memory: only where `host` is false. What is queued between graph_begin and graph_end is
     * recorded, not done; graph_launch does it again and again, for less. Addresses and sizes are those of the
     * recording, and graph_free comes before what was recorded goes away. Mark i (0..DEVICE_MARKS-1) stands behind all
     * that is queued when it is made; `wait` returns when that is done. event and stream are CUDA's own names of mark
     * i and of the queue. `side` is a second queue, for what may go on beside the first: a stream of a higher
     * priority. fork: what is queued there from now on runs behind all that the first holds now; join: the first goes
     * on when the second is done. Where one is recorded the other is, too, between a fork and the join behind it,
     * without which the recording fails. */
    void *(*shared)(struct kctx *ctx, size_t bytes, struct err *err);
    void (*shared_free)(struct kctx *ctx, void *p);
    void (*mark)(struct kctx *ctx, int i);
    int (*wait)(struct kctx *ctx, int i, struct err *err);
    void *(*event)(struct kctx *ctx, int i);
    void *(*stream)(struct kctx *ctx);
    void (*fork)(struct kctx *ctx);
    void (*join)(struct kctx *ctx);
    void *(*side)(struct kctx *ctx);
    int (*graph_begin)(struct kctx *ctx, struct err *err);
    struct device_graph *(*graph_end)(struct kctx *ctx, struct err *err);
    int (*graph_launch)(struct kctx *ctx, struct device_graph *graph, struct err *err);
    void (*graph_free)(struct kctx *ctx, struct device_graph *graph);

#define KERNEL_MEMBER(op) op##_op *op;
    KERNEL_OPS(KERNEL_MEMBER)
    KERNEL_HOST_OPS(KERNEL_MEMBER)
    KERNEL_QUEUED(KERNEL_MEMBER)
#undef KERNEL_MEMBER
};

/* The head of every device's own context. */
struct kctx {
    const struct kernel_ops *ops;
    enum element element;
};

#endif
