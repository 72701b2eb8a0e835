/* gather.cu - gather a batch's samples and targets from the data set on the GPU, a thread per element. */
#include "kernels/cuda/begin.cuh"

namespace
{

/* An order lies in the process's memory, which a GPU reads in a microsecond or two: once per block, of so many blocks at most. */
constexpr unsigned BEGIN_BLOCKS = 128;

__global__ void gather_samples(struct gather g, struct gather_batch to, const uint32_t *items,
                               const uint32_t *order, const int64_t *first, queued_begin begin, int64_t n)
{
    const int64_t len = (int64_t)g.len;
    SHARED(int64_t, block_first, 1);

    if (threadIdx.x == 0)
        *block_first = begin.state ? step_order_of(begin).first : *first;
    if (begin.state && blockIdx.x == 0 && threadIdx.x == 0)
        step_begin(begin);
    __syncthreads();
    const int64_t place0 = *block_first;
    for (int64_t i = each_first(); i < n; i += each_stride()) {
        const int64_t r = i / len;
        const int64_t at = i % len;
        const uint32_t place = order ? order[place0 + r] : (uint32_t)(place0 + r);
        const int64_t item = items ? items[place] : place;
        const int64_t from = item * len + at;
        to.x[i] = g.bytes ? g.table[at % g.stats * 256 + g.bytes[from]] : g.floats[from];
        if (at != 0)
            continue;
        to.samples[r] = place;
        if (g.labels)
            to.labels[r] = g.labels[item];
        for (int v = 0; v < g.value_len; v++)
            to.values[r * g.value_len + v] = g.values[item * g.value_len + v];
    }
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
