/* optim.c - apply one optimizer step to the parameters, at the schedule's learning rate. */
#include "trainer/model/optim.h"

#include "kernels/reduce.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static float *zeros(size_t len)
{
    size_t bytes = (len * sizeof(float) + 64) / 64 * 64;
    float *p = aligned_alloc(64, bytes);

    return p ? memset(p, 0, bytes) : NULL;
}

static bool decayed(const struct optimizer_spec *spec, const struct param_row *row)
{
    return !spec->decay_matrices_only || row->dims >= 2;
}

static int make_spans(struct optim *o, const struct param_row *row, int rows, struct err *err)
{
    o->span = calloc((size_t)rows + 1, sizeof(*o->span));
    if (!o->span)
        return err_memory(err, "no memory for %d groups of parameters", rows);
    for (int i = 0; i < rows; i++) {
        struct optim_span *last = o->spans ? &o->span[o->spans - 1] : NULL;
        if (last && last->decay == decayed(&o->spec, &row[i]))
            last->len += row[i].len;
        else
            o->span[o->spans++] = (struct optim_span){row[i].offset, row[i].len, decayed(&o->spec, &row[i])};
        o->len += row[i].len;
    }
    return 0;
}

int optim_make(struct optim *o, const struct optimizer_spec *spec, const struct param_row *row, int rows,
               struct err *err)
{
    bool adam = spec->type != OPTIMIZER_SGD;

    *o = (struct optim){.spec = *spec, .grad_norm = NAN};
    if (make_spans(o, row, rows, err))
        return -1;
    if (adam || spec->momentum != 0)
        o->m = zeros(o->len);
    if (adam)
        o->v = zeros(o->len);
    if (spec->clip > 0)
        o->square = calloc(reduce_blocks(o->len) + 1, sizeof(*o->square));
    if ((o->m || (!adam && spec->momentum == 0)) && (o->v || !adam) && (o->square || !(spec->clip > 0)))
        return 0;
    optim_release(o);
    return err_memory(err, "no memory for the optimiser's moments");
}

void optim_release(struct optim *o)
{
    free(o->m);
    free(o->v);
    free(o->span);
    free(o->square);
    o->m = NULL;
    o->v = NULL;
    o->span = NULL;
    o->square = NULL;
    o->spans = 0;
}

struct adam_options optim_adam(const struct optim *o, double lr, bool decay)
{
    return (struct adam_options){.lr = lr,
                                 .beta1 = o->spec.beta1,
                                 .beta2 = o->spec.beta2,
                                 .eps = o->spec.eps,
                                 .weight_decay = decay ? o->spec.weight_decay : 0,
                                 .decoupled = o->spec.type == OPTIMIZER_ADAMW};
}

/* torch starts from the first gradient as it is. */
struct sgd_options optim_sgd(const struct optim *o, double lr, bool decay, int64_t step)
{
    return (struct sgd_options){.lr = lr,
                                .momentum = o->spec.momentum,
                                .dampening = step == 1 ? 0 : o->spec.dampening,
                                .weight_decay = decay ? o->spec.weight_decay : 0,
                                .nesterov = o->spec.nesterov};
}

static void step_span(struct optim *o, const struct optim_span *at, struct kctx *ctx, double lr,
                      float *values, const float *grad)
{
    float *m = o->m ? o->m + at->offset : NULL;

    switch (o->spec.type) {
    case OPTIMIZER_ADAM:
    case OPTIMIZER_ADAMW: {
        struct adam_options adam = optim_adam(o, lr, at->decay);
        adam_step(ctx, &adam, o->step, values + at->offset, m, o->v + at->offset, grad + at->offset, at->len);
        break;
    }
    case OPTIMIZER_SGD: {
        struct sgd_options sgd = optim_sgd(o, lr, at->decay, o->step);
        sgd_step(ctx, &sgd, values + at->offset, m, grad + at->offset, at->len);
        break;
    }
    }
}

double optim_squares(struct optim *o, struct kctx *ctx, const float *grad)
{
    double sum = 0;

    if (!o->square)
        return 0;
    reduce_squares(ctx, o->square, grad, o->len);
    for (size_t i = 0; i < reduce_blocks(o->len); i++)
        sum += o->square[i];
    return sum;
}

/* torch.nn.utils.clip_grad_norm_, but for one norm over all instead of a norm of norms. */
static void clip(struct optim *o, struct kctx *ctx, float *grad, double squares)
{
    o->grad_norm = sqrt(squares);
    float scale = (float)(o->spec.clip / (o->grad_norm + 1e-6));
    if (scale < 1)
        reduce_scale(ctx, grad, scale, o->len);
}

void optim_step_within(struct optim *o, struct kctx *ctx, double lr, float *values, float *grad,
                       double squares)
{
    if (o->square)
        clip(o, ctx, grad, squares);
    o->step++;
    for (int i = 0; i < o->spans; i++)
        step_span(o, &o->span[i], ctx, lr, values, grad);
}

void optim_step(struct optim *o, struct kctx *ctx, double lr, float *values, float *grad)
{
    optim_step_within(o, ctx, lr, values, grad, optim_squares(o, ctx, grad));
}
