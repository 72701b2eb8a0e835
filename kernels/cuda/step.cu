/* step.cu - begin and end an optimiser step on the GPU: its order, counters and record; one thread. */
#include "kernels/cuda/step.cuh"

namespace
{

__global__ void step_begin_alone(queued_begin b)
{
    step_begin(b);
}

__global__ void step_advance(struct step_state *state, int places)
{
    state->now.first += places;
}

__global__ void step_end(struct step_state *state, const struct queued_loss *own, int rows, const float *loss,
                         const struct queued_norm *norm, const float *flags, struct step_record *records,
                         int ring)
{
    step_end_of(state, own, rows, loss, norm, flags, records, ring);
}

__global__ void step_count(int64_t *x)
{
    ++*x;
}

} // namespace

void cuda_queue_step_begin(struct kctx *ctx, const struct queued_begin *begin)
{
    LAUNCH(cuda_of(ctx), 1, 1, step_begin_alone, *begin);
}

void cuda_queue_step_advance(struct kctx *ctx, struct step_state *state, int places)
{
    LAUNCH(cuda_of(ctx), 1, 1, step_advance, state, places);
}

void cuda_queue_step_end(struct kctx *ctx, struct step_state *state, const struct queued_loss *own, int rows,
                         const float *loss, const struct queued_norm *norm, const float *flags,
                         struct step_record *records, int ring)
{
    LAUNCH(cuda_of(ctx), 1, 1, step_end, state, own, rows, loss, norm, flags, records, ring);
}

void cuda_queue_count(struct kctx *ctx, int64_t *x)
{
    LAUNCH(cuda_of(ctx), 1, 1, step_count, x);
}
