/* step.cu - begin and end an optimiser step on the GPU: its order, counters and record; one thread. */
#include "kernels/cuda/begin.cuh"

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
    struct step_record r;
    r.norm = norm ? norm->norm : NAN;
    r.loss = *loss;
    r.own = (float)(own->sum / rows);
    r.halted = state->halted || !isfinite(r.loss);
    r.flags = 0;
    for (int i = 0; i < QUEUED_FLAGS && flags; i++)
        r.flags |= (flags[i] > 0 ? 1U : 0U) << i;
    if (!r.halted) {
        state->own_sum += own->sum / rows;
        state->mean_sum += (double)r.loss;
    }
    state->halted = r.halted;
    records[state->steps % ring] = r;
    state->steps++;
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
