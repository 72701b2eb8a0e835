/* loss.cuh - sum the parts of a loss in one block and in a fixed order, without atomics. */
#ifndef TK_KERNELS_CUDA_LOSS_CUH
#define TK_KERNELS_CUDA_LOSS_CUH

#include "kernels/cuda/grid.h"

namespace
{

constexpr int LOSS_THREADS = 256;
constexpr int NO_BAD_ROW = 0x7fffffff;

struct loss_part {
    double sum;
    int32_t correct, bad_row;
};

constexpr int LOSS_PARTS_MAX = CUDA_PARTS_BYTES / (int)sizeof(loss_part);

/* The mean over the rows, times a share of it, for a gradient's company. */
struct loss_mean {
    float *to; /* or NULL */
    int rows;
    float share;
};

__device__ inline loss_part loss_add(loss_part a, loss_part b)
{
    return loss_part{a.sum + b.sum, a.correct + b.correct, a.bad_row < b.bad_row ? a.bad_row : b.bad_row};
}

__global__ void loss_finish(struct queued_loss *result, const loss_part *part, int parts, double divisor,
                            bool add, loss_mean mean)
{
    SHARED(loss_part, mine, LOSS_THREADS);
    const int t = (int)threadIdx.x;
    loss_part sum = {0, 0, NO_BAD_ROW};

    for (int i = t; i < parts; i += LOSS_THREADS)
        sum = loss_add(sum, part[i]);
    mine[t] = sum;
    __syncthreads();
    for (int half = LOSS_THREADS / 2; half > 0; half /= 2) {
        if (t < half)
            mine[t] = loss_add(mine[t], mine[t + half]);
        __syncthreads();
    }
    if (t != 0)
        return;
    struct queued_loss all = {mine[0].sum / divisor, mine[0].correct,
                              mine[0].bad_row == NO_BAD_ROW ? -1 : mine[0].bad_row};
    if (add) {
        all.sum += result->sum;
        all.correct += result->correct;
        all.bad_row = result->bad_row >= 0 ? result->bad_row : all.bad_row;
    }
    *result = all;
    if (mean.to)
        *mean.to = (float)(all.sum / mean.rows) * mean.share;
}

inline void loss_sum(struct cuda *c, struct queued_loss *result, int parts, double divisor, bool add,
                     loss_mean mean)
{
    LAUNCH(c, 1, LOSS_THREADS, loss_finish, result, (const loss_part *)c->parts, parts, divisor, add, mean);
}

/* c->loss, waited for: the whole of a call that is not queued. */
inline int loss_get(struct cuda *c, struct cross_entropy_result *result, const char *op,
                    const int32_t *labels, int classes, struct err *err)
{
    struct kctx *ctx = &c->ctx;
    struct queued_loss r;
    int32_t label;

    if (ctx->ops->get(ctx, &r, c->loss, sizeof(r), err))
        return -1;
    if (r.bad_row >= 0) {
        if (ctx->ops->get(ctx, &label, labels + r.bad_row, sizeof(label), err))
            return -1;
        return err_set(err, ERR_INVALID, "%s: the label of row %d is %d, expected 0..%d", op, r.bad_row,
                       label, classes - 1);
    }
    result->loss_sum = r.sum;
    result->correct = r.correct;
    return 0;
}

} // namespace

#endif
