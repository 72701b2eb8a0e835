/* optim.c - apply one optimizer step to the parameters, at the schedule's learning rate. */
#include "trainer/model/optim.h"

#include "common/memory.h"
#include "kernels/ops.h"

#include <math.h>
#include <stdlib.h>

#define OPTIMIZER_ROW(name) &optimizer_##name,
const struct optimizer_ops *const optimizer_kinds[] = {OPTIMIZERS(OPTIMIZER_ROW) NULL};

#define OPTIMIZER_TYPE(name) #name,
const char *const optimizer_types[] = {OPTIMIZERS(OPTIMIZER_TYPE) NULL};

struct optimizer_spec optimizer_spec_of(const struct optimizer_ops *ops, double lr)
{
    struct optimizer_spec o = {.ops = ops, .lr = lr, .weight_decay = ops->weight_decay};

    spec_defaults(ops->options, o.option, o.number);
    return o;
}

static bool decayed(const struct optimizer_spec *spec, const struct param_row *row)
{
    return !spec->decay_matrices_only || row->dims >= 2;
}

static void make_spans(struct optim *o, const struct param_row *row, int rows)
{
    o->span = memory_must(calloc((size_t)rows + 1, sizeof(*o->span)));
    for (int i = 0; i < rows; i++) {
        struct optim_span *last = o->spans ? &o->span[o->spans - 1] : NULL;
        if (last && last->decay == decayed(&o->spec, &row[i]))
            last->len += row[i].len;
        else
            o->span[o->spans++] = (struct optim_span){row[i].offset, row[i].len, decayed(&o->spec, &row[i])};
        o->len += row[i].len;
    }
}

static int moments_of(const struct optimizer_spec *spec)
{
    return spec->ops->moments ? spec->ops->moments(spec)
                              : (spec->ops->moment[0] != NULL) + (spec->ops->moment[1] != NULL);
}

int optim_make(struct optim *o, const struct optimizer_spec *spec, const struct param_row *row, int rows,
               struct err *err)
{
    const int moments = moments_of(spec);

    *o = (struct optim){.spec = *spec, .grad_norm = NAN};
    make_spans(o, row, rows);
    if ((moments < 1 || (o->m = host_zeroed(o->len * sizeof(*o->m), err))) &&
        (moments < 2 || (o->v = host_zeroed(o->len * sizeof(*o->v), err))) &&
        (!(spec->clip > 0) || (o->square = host_zeroed(reduce_blocks(o->len) * sizeof(*o->square), err))))
        return 0;
    optim_release(o);
    return err_wrap(err, "the optimizer");
}

void optim_release(struct optim *o)
{
    free(o->m);
    free(o->v);
    free(o->span);
    free(o->square);
    *o = (struct optim){0};
}

struct update_scalars optim_scalars(const struct optim *o, double lr, bool decay, int64_t step)
{
    return o->spec.ops->scalars(&o->spec, lr, decay ? o->spec.weight_decay : 0, step);
}

static void step_span(struct optim *o, const struct optim_span *at, struct kctx *ctx, double lr,
                      float *values, const float *grad)
{
    const struct update_scalars s = optim_scalars(o, lr, at->decay, o->step);

    ctx->ops->update_step(ctx, &s, values + at->offset, o->m ? o->m + at->offset : NULL,
                          o->v ? o->v + at->offset : NULL, grad + at->offset, at->len);
}

double optim_squares(struct optim *o, struct kctx *ctx, const float *grad)
{
    double sum = 0;

    if (!o->square)
        return 0;
    ctx->ops->reduce_squares(ctx, o->square, grad, o->len);
    for (size_t i = 0; i < reduce_blocks(o->len); i++)
        sum += o->square[i];
    return sum;
}

/* torch.nn.utils.clip_grad_norm_, but with one norm over all gradients instead of a norm of norms. */
static void clip(struct optim *o, struct kctx *ctx, float *grad, double squares)
{
    o->grad_norm = sqrt(squares);
    float scale = (float)(o->spec.clip / (o->grad_norm + 1e-6));
    if (scale < 1)
        ctx->ops->reduce_scale(ctx, grad, scale, o->len);
}

void optim_step(struct optim *o, struct kctx *ctx, double lr, float *values, float *grad, double squares)
{
    if (o->square)
        clip(o, ctx, grad, squares);
    o->step++;
    for (int i = 0; i < o->spans; i++)
        step_span(o, &o->span[i], ctx, lr, values, grad);
}
