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

struct loss_add {
    __device__ loss_part operator()(loss_part a, loss_part b) const
    {
        return loss_part{a.sum + b.sum, a.correct + b.correct, a.bad_row < b.bad_row ? a.bad_row : b.bad_row};
    }
};

/* Where the sum of the parts goes. */
struct loss_target {
    struct queued_loss *result;
    double divisor;
    bool add; /* to what *result holds */
    loss_mean mean;
};

/* By one thread. */
__device__ inline void loss_write(const loss_target &to, loss_part sum)
{
    struct queued_loss all = {sum.sum / to.divisor, sum.correct,
                              sum.bad_row == NO_BAD_ROW ? -1 : sum.bad_row};
    if (to.add) {
        all.sum += to.result->sum;
        all.correct += to.result->correct;
        all.bad_row = to.result->bad_row >= 0 ? to.result->bad_row : all.bad_row;
    }
    *to.result = all;
    if (to.mean.to)
        *to.mean.to = (float)(all.sum / to.mean.rows) * to.mean.share;
}

/* One block. */
__global__ void loss_sum_kernel(loss_target to, const loss_part *part, int parts)
{
    SHARED(loss_part, mine, LOSS_THREADS);
    loss_part sum = {0, 0, NO_BAD_ROW};

    for (int i = (int)threadIdx.x; i < parts; i += LOSS_THREADS)
        sum = loss_add()(sum, part[i]);
    sum = block_reduce<LOSS_THREADS>(mine, sum, loss_add());
    if (threadIdx.x == 0)
        loss_write(to, sum);
}

/* Of c->parts. */
inline void loss_sum(struct cuda *c, const loss_target &to, int parts)
{
    LAUNCH(c, 1, LOSS_THREADS, loss_sum_kernel, to, (const loss_part *)c->parts, parts);
}

} // namespace

#endif
