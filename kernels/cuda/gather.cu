/* gather.cu - gather a batch's samples and targets from the data set on the GPU, a thread per element. */
#include "kernels/cuda/step.cuh"

namespace
{

/* That read a step's order: so many at most. */
constexpr unsigned BEGIN_BLOCKS = 128;

__global__ void gather_samples(struct gather g, struct gather_batch to, const uint32_t *items,
                               const uint32_t *order, const int64_t *first, queued_begin begin, int64_t n)
{
    gather_from(g, to, items, order, gather_first(begin, first), n);
}

__global__ void gather_windows(queued_windows from, gather_batch to, const struct step_state *state,
                               int64_t n)
{
    const int64_t row0 = state->steps % from.ring * from.rows + state->now.first;
    for (int64_t i = each_first(); i < n; i += each_stride()) {
        to.x[i] = from.x[row0 * from.time + i];
        to.labels[i] = from.labels[row0 * from.time + i];
        if (i % from.time == 0)
            to.samples[i / from.time] = from.samples[row0 + i / from.time];
    }
}

} // namespace

void cuda_queue_gather(struct kctx *ctx, const struct gather *g, const struct gather_batch *to,
                       const uint32_t *items, const uint32_t *order, const int64_t *first,
                       const struct queued_begin *begin, int rows)
{
    const int64_t n = (int64_t)rows * (int64_t)g->len;
    const unsigned blocks = blocks_for(n, EACH_THREADS);

    if (begin && blocks > BEGIN_BLOCKS) {
        cuda_queue_step_begin(ctx, begin);
        first = &begin->state->now.first;
        begin = nullptr;
    }
    LAUNCH(cuda_of(ctx), blocks, EACH_THREADS, gather_samples, *g, *to, items, order, first,
           begin ? *begin : queued_begin{}, n);
}

void cuda_queue_windows(struct kctx *ctx, const struct queued_windows *from, const struct gather_batch *to,
                        const struct step_state *state, int rows)
{
    const int64_t n = (int64_t)rows * from->time;
    LAUNCH(cuda_of(ctx), blocks_for(n, EACH_THREADS), EACH_THREADS, gather_windows, *from, *to, state, n);
}
