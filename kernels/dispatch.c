/* dispatch.c - pass each operation to the implementation of the context's device. */
#include "kernels/ops.h"

void linear_forward(struct kctx *ctx, const struct linear_shape *s, void *out, const void *in,
                    const void *weight, const void *bias, bool relu)
{
    ctx->ops->linear_forward(ctx, s, out, in, weight, bias, relu);
}

void linear_backward(struct kctx *ctx, const struct linear_shape *s, void *din, float *dweight, float *dbias,
                     const void *dout, const void *out, const void *in, const void *weight)
{
    ctx->ops->linear_backward(ctx, s, din, dweight, dbias, dout, out, in, weight);
}

void linear_gelu_forward(struct kctx *ctx, const struct linear_shape *s, void *out, void *before,
                         const void *in, const void *weight, const void *bias)
{
    if (ctx->ops->linear_gelu_forward) {
        ctx->ops->linear_gelu_forward(ctx, s, out, before, in, weight, bias);
        return;
    }
    linear_forward(ctx, s, before, in, weight, bias, false);
    gelu_forward(ctx, GELU_TANH, out, before, (size_t)s->rows * (size_t)s->out);
}

void gelu_linear_backward(struct kctx *ctx, const struct linear_shape *s, void *din, void *room,
                          float *dweight, float *dbias, const void *dout, const void *in, const void *before,
                          const void *weight)
{
    if (ctx->ops->gelu_linear_backward) {
        ctx->ops->gelu_linear_backward(ctx, s, din, room, dweight, dbias, dout, in, before, weight);
        return;
    }
    linear_backward(ctx, s, room, dweight, dbias, dout, NULL, in, weight);
    gelu_backward(ctx, GELU_TANH, din, room, before, (size_t)s->rows * (size_t)s->in);
}

void conv2d_forward(struct kctx *ctx, const struct conv2d_shape *s, float *out, const float *in,
                    const float *weight, const float *bias, bool relu)
{
    ctx->ops->conv2d_forward(ctx, s, out, in, weight, bias, relu);
}

void conv2d_backward(struct kctx *ctx, const struct conv2d_shape *s, float *din, float *dweight, float *dbias,
                     const float *dout, const float *out, const float *in, const float *weight)
{
    ctx->ops->conv2d_backward(ctx, s, din, dweight, dbias, dout, out, in, weight);
}

void maxpool2d_forward(struct kctx *ctx, const struct pool2d_shape *s, float *out, uint8_t *argmax,
                       const float *in)
{
    ctx->ops->maxpool2d_forward(ctx, s, out, argmax, in);
}

void maxpool2d_backward(struct kctx *ctx, const struct pool2d_shape *s, float *din, const float *dout,
                        const uint8_t *argmax, const float *out)
{
    ctx->ops->maxpool2d_backward(ctx, s, din, dout, argmax, out);
}

void avgpool2d_forward(struct kctx *ctx, const struct pool2d_shape *s, float *out, const float *in)
{
    ctx->ops->avgpool2d_forward(ctx, s, out, in);
}

void avgpool2d_backward(struct kctx *ctx, const struct pool2d_shape *s, float *din, const float *dout)
{
    ctx->ops->avgpool2d_backward(ctx, s, din, dout);
}

void relu_forward(struct kctx *ctx, float *out, const float *in, size_t n)
{
    ctx->ops->relu_forward(ctx, out, in, n);
}

void relu_backward(struct kctx *ctx, float *din, const float *dout, const float *out, size_t n)
{
    ctx->ops->relu_backward(ctx, din, dout, out, n);
}

void gelu_forward(struct kctx *ctx, enum gelu_form form, void *out, const void *in, size_t n)
{
    ctx->ops->gelu_forward(ctx, form, out, in, n);
}

void gelu_backward(struct kctx *ctx, enum gelu_form form, void *din, const void *dout, const void *in,
                   size_t n)
{
    ctx->ops->gelu_backward(ctx, form, din, dout, in, n);
}

void softmax_forward(struct kctx *ctx, float *out, const float *in, int rows, int classes)
{
    ctx->ops->softmax_forward(ctx, out, in, rows, classes);
}

void softmax_backward(struct kctx *ctx, float *din, const float *dout, const float *out, int rows,
                      int classes)
{
    ctx->ops->softmax_backward(ctx, din, dout, out, rows, classes);
}

void add(struct kctx *ctx, void *out, const void *a, const void *b, size_t n)
{
    ctx->ops->add(ctx, out, a, b, n);
}

void attention_forward(struct kctx *ctx, const struct attention_shape *s, void *out, float *lse,
                       const void *qkv)
{
    ctx->ops->attention_forward(ctx, s, out, lse, qkv);
}

void attention_backward(struct kctx *ctx, const struct attention_shape *s, void *dqkv, const void *dout,
                        const void *out, const float *lse, const void *qkv)
{
    ctx->ops->attention_backward(ctx, s, dqkv, dout, out, lse, qkv);
}

void embedding_forward(struct kctx *ctx, const struct embedding_shape *s, void *out, const float *tokens,
                       const void *table, const void *positions)
{
    ctx->ops->embedding_forward(ctx, s, out, tokens, table, positions);
}

void embedding_backward(struct kctx *ctx, const struct embedding_shape *s, bool more, float *dtable,
                        float *dpositions, const void *dout, const float *tokens)
{
    ctx->ops->embedding_backward(ctx, s, more, dtable, dpositions, dout, tokens);
}

int classifier(struct kctx *ctx, const struct linear_shape *s, struct cross_entropy_result *result, void *din,
               float *dweight, const void *in, const void *weight, const int32_t *labels, float share,
               struct err *err)
{
    return ctx->ops->classifier(ctx, s, result, din, dweight, in, weight, labels, share, err);
}

void reduce_squares(struct kctx *ctx, double *sums, const float *x, size_t n)
{
    ctx->ops->reduce_squares(ctx, sums, x, n);
}

void reduce_scale(struct kctx *ctx, float *x, float scale, size_t n)
{
    ctx->ops->reduce_scale(ctx, x, scale, n);
}

int cross_entropy(struct kctx *ctx, struct cross_entropy_result *result, float *dlogits, const float *logits,
                  const int32_t *labels, int rows, int classes, double smoothing, struct err *err)
{
    return ctx->ops->cross_entropy(ctx, result, dlogits, logits, labels, rows, classes, smoothing, err);
}

double mse(struct kctx *ctx, float *dout, const float *out, const float *target, int rows, int cols)
{
    return ctx->ops->mse(ctx, dout, out, target, rows, cols);
}

void dropout_forward(struct kctx *ctx, const struct dropout_shape *s, const struct dropout_draw *draw,
                     void *out, uint8_t *keep, const void *in)
{
    ctx->ops->dropout_forward(ctx, s, draw, out, keep, in);
}

void dropout_backward(struct kctx *ctx, const struct dropout_shape *s, void *din, const void *dout,
                      const uint8_t *keep)
{
    ctx->ops->dropout_backward(ctx, s, din, dout, keep);
}

void batchnorm_forward(struct kctx *ctx, const struct batchnorm_shape *s, bool train, float *out, float *mean,
                       float *rstd, float *running_mean, float *running_var, const float *in,
                       const float *weight, const float *bias)
{
    ctx->ops->batchnorm_forward(ctx, s, train, out, mean, rstd, running_mean, running_var, in, weight, bias);
}

void batchnorm_backward(struct kctx *ctx, const struct batchnorm_shape *s, bool train, float *din,
                        float *dweight, float *dbias, const float *dout, const float *in, const float *mean,
                        const float *rstd, const float *weight)
{
    ctx->ops->batchnorm_backward(ctx, s, train, din, dweight, dbias, dout, in, mean, rstd, weight);
}

void layernorm_forward(struct kctx *ctx, const struct layernorm_shape *s, void *out, float *mean, float *rstd,
                       const void *in, const float *weight, const float *bias)
{
    ctx->ops->layernorm_forward(ctx, s, out, mean, rstd, in, weight, bias);
}

void layernorm_backward(struct kctx *ctx, const struct layernorm_shape *s, void *din, float *dweight,
                        float *dbias, const void *dout, const void *more, const void *in, const float *mean,
                        const float *rstd, const float *weight)
{
    ctx->ops->layernorm_backward(ctx, s, din, dweight, dbias, dout, more, in, mean, rstd, weight);
}

void flatten_forward(struct kctx *ctx, const struct flatten_shape *s, float *out, const float *in)
{
    ctx->ops->flatten_forward(ctx, s, out, in);
}

void flatten_backward(struct kctx *ctx, const struct flatten_shape *s, float *din, const float *dout)
{
    ctx->ops->flatten_backward(ctx, s, din, dout);
}

void update_step(struct kctx *ctx, const struct update_scalars *s, float *p, float *m, float *v,
                 const float *g, size_t n)
{
    ctx->ops->update_step(ctx, s, p, m, v, g, n);
}

void queue_cross_entropy(struct kctx *ctx, struct queued_loss *result, float *mean, float *dlogits,
                         const float *logits, const int32_t *labels, int rows, int classes, double smoothing,
                         float share, bool add)
{
    ctx->ops->queue_cross_entropy(ctx, result, mean, dlogits, logits, labels, rows, classes, smoothing, share,
                                  add);
}

void queue_mse(struct kctx *ctx, struct queued_loss *result, float *mean, float *dout, const float *out,
               const float *target, int rows, int cols, float share, bool add)
{
    ctx->ops->queue_mse(ctx, result, mean, dout, out, target, rows, cols, share, add);
}

void queue_classifier(struct kctx *ctx, const struct linear_shape *s, struct queued_loss *result, float *mean,
                      void *din, float *dweight, const void *in, const void *weight, const int32_t *labels,
                      float share, bool add)
{
    ctx->ops->queue_classifier(ctx, s, result, mean, din, dweight, in, weight, labels, share, add);
}

size_t queued_classifier_bytes(const struct linear_shape *s)
{
    size_t row = ((size_t)s->out + QUEUED_LOGITS_ALIGN - 1) / QUEUED_LOGITS_ALIGN * QUEUED_LOGITS_ALIGN;
    size_t fit = QUEUED_LOGITS_MAX / row;
    size_t rows = fit > (size_t)s->rows ? (size_t)s->rows : fit;

    return (rows ? rows : 1) * row * sizeof(float);
}

void queue_gather(struct kctx *ctx, const struct gather *g, const struct gather_batch *to,
                  const uint32_t *items, const uint32_t *order, const int64_t *first,
                  const struct queued_begin *begin, int rows)
{
    ctx->ops->queue_gather(ctx, g, to, items, order, first, begin, rows);
}

void queue_windows(struct kctx *ctx, const struct queued_windows *from, const struct gather_batch *to,
                   const struct step_state *state, int rows)
{
    ctx->ops->queue_windows(ctx, from, to, state, rows);
}

void queue_accumulate(struct kctx *ctx, float *sum, const float *more, size_t n)
{
    ctx->ops->queue_accumulate(ctx, sum, more, n);
}

void queue_squares(struct kctx *ctx, struct queued_norm *norm, const float *grad, size_t n)
{
    ctx->ops->queue_squares(ctx, norm, grad, n);
}

void queue_bound(struct kctx *ctx, struct queued_norm *norm, double bound)
{
    ctx->ops->queue_bound(ctx, norm, bound);
}

void queue_step_begin(struct kctx *ctx, const struct queued_begin *begin)
{
    ctx->ops->queue_step_begin(ctx, begin);
}

void queue_step_advance(struct kctx *ctx, struct step_state *state, int places)
{
    ctx->ops->queue_step_advance(ctx, state, places);
}

void queue_step_end(struct kctx *ctx, struct step_state *state, const struct queued_loss *own, int rows,
                    const float *loss, const struct queued_norm *norm, const float *flags,
                    struct step_record *records, int ring)
{
    ctx->ops->queue_step_end(ctx, state, own, rows, loss, norm, flags, records, ring);
}

void queue_round(struct kctx *ctx, const struct queued_params *w)
{
    ctx->ops->queue_round(ctx, w);
}

void queue_update(struct kctx *ctx, enum update_rule rule, const struct step_state *state, const float *loss,
                  const float *scale, const struct queued_span *span, int spans,
                  const struct queued_params *w, float *m, float *v, const float *g)
{
    ctx->ops->queue_update(ctx, rule, state, loss, scale, span, spans, w, m, v, g);
}

void queue_count(struct kctx *ctx, int64_t *x)
{
    ctx->ops->queue_count(ctx, x);
}
