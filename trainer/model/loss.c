/* loss.c - the table of losses: cross entropy and mean squared error. */
#include "trainer/model/loss.h"

#include "kernels/ops.h"

bool loss_wants_values(const struct loss_spec *s)
{
    return s->type == LOSS_MSE;
}

int loss_of(const struct loss_spec *s, struct kctx *ctx, struct loss_result *ret, float *dout,
            const float *out, const struct loss_target *target, int rows, int width, struct err *err)
{
    struct cross_entropy_result r = {0};

    switch (s->type) {
    case LOSS_CROSS_ENTROPY:
        if (ctx->ops->cross_entropy(ctx, &r, dout, out, target->labels, rows, width, s->label_smoothing, err))
            return -1;
        break;
    case LOSS_MSE:
        r.loss_sum = ctx->ops->mse(ctx, dout, out, target->values, rows, width);
        break;
    }
    *ret = (struct loss_result){.sum = r.loss_sum, .correct = r.correct};
    return 0;
}
