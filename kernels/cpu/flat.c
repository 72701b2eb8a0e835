/* flat.c - element-wise operations over flat buffers, cut into chunks for the threads. */
#include "kernels/cpu/ops.h"
#include "kernels/cpu/run.h"
#include "kernels/gelu.h"
#include "kernels/reduce.h"

enum { CHUNK = 4096 }; /* elements; a multiple of every vector's width */

typedef void unary_fn(float *, const float *, size_t);
typedef void binary_fn(float *, const float *, const float *, size_t);

struct flat {
    const struct isa_ops *ops;
    size_t n;
    float *a, *b, *c;
    const float *x, *y;
    float scale;
    double *sums;
    unary_fn *unary;
    binary_fn *binary;
    const struct update_scalars *scalars;
};

static void run_chunks(struct kctx *ctx, struct flat *f, run_fn *fn)
{
    f->ops = kctx_ops(ctx);
    kctx_run(ctx, (int)((f->n + CHUNK - 1) / CHUNK), fn, f);
}

static size_t chunk_end(const struct flat *f, int end)
{
    return f->n < (size_t)end * CHUNK ? f->n : (size_t)end * CHUNK;
}

static void unary_chunks(void *arg, int begin, int end)
{
    const struct flat *f = arg;
    size_t i = (size_t)begin * CHUNK;
    f->unary(f->a + i, f->x + i, chunk_end(f, end) - i);
}

static void run_unary(struct kctx *ctx, unary_fn *fn, float *out, const float *x, size_t n)
{
    run_chunks(ctx, &(struct flat){.unary = fn, .a = out, .x = x, .n = n}, unary_chunks);
}

static void binary_chunks(void *arg, int begin, int end)
{
    const struct flat *f = arg;
    size_t i = (size_t)begin * CHUNK;
    f->binary(f->a + i, f->x + i, f->y + i, chunk_end(f, end) - i);
}

static void run_binary(struct kctx *ctx, binary_fn *fn, float *out, const float *x, const float *y, size_t n)
{
    run_chunks(ctx, &(struct flat){.binary = fn, .a = out, .x = x, .y = y, .n = n}, binary_chunks);
}

void cpu_relu_forward(struct kctx *ctx, float *out, const float *in, size_t n)
{
    run_unary(ctx, kctx_ops(ctx)->relu, out, in, n);
}

void cpu_relu_backward(struct kctx *ctx, float *din, const float *dout, const float *out, size_t n)
{
    run_binary(ctx, kctx_ops(ctx)->relu_mask, din, dout, out, n);
}

void cpu_gelu_forward(struct kctx *ctx, enum gelu_form form, void *out, const void *in, size_t n)
{
    const struct isa_ops *ops = kctx_ops(ctx);

    run_unary(ctx, form == GELU_TANH ? ops->gelu_tanh : ops->gelu, out, in, n);
}

void cpu_gelu_backward(struct kctx *ctx, enum gelu_form form, void *din, const void *dout, const void *in,
                       size_t n)
{
    const struct isa_ops *ops = kctx_ops(ctx);

    run_binary(ctx, form == GELU_TANH ? ops->gelu_tanh_grad : ops->gelu_grad, din, dout, in, n);
}

void cpu_add(struct kctx *ctx, void *out, const void *a, const void *b, size_t n)
{
    run_binary(ctx, kctx_ops(ctx)->add, out, a, b, n);
}

_Static_assert((int)REDUCE_BLOCK == (int)CHUNK, "a unit of work is a block");

static void square_chunks(void *arg, int begin, int end)
{
    const struct flat *f = arg;
    for (int i = begin; i < end; i++) {
        size_t at = (size_t)i * CHUNK;
        f->sums[i] = f->ops->square_sum(f->x + at, chunk_end(f, i + 1) - at);
    }
}

void cpu_reduce_squares(struct kctx *ctx, double *sums, const float *x, size_t n)
{
    run_chunks(ctx, &(struct flat){.sums = sums, .x = x, .n = n}, square_chunks);
}

static void scale_chunks(void *arg, int begin, int end)
{
    const struct flat *f = arg;
    size_t i = (size_t)begin * CHUNK;
    f->ops->scale_row(f->a + i, f->scale, chunk_end(f, end) - i);
}

void cpu_reduce_scale(struct kctx *ctx, float *x, float scale, size_t n)
{
    run_chunks(ctx, &(struct flat){.a = x, .scale = scale, .n = n}, scale_chunks);
}

static void update_chunks(void *arg, int begin, int end)
{
    const struct flat *f = arg;
    size_t i = (size_t)begin * CHUNK;
    f->ops->update(f->scalars, f->a + i, f->b ? f->b + i : NULL, f->c ? f->c + i : NULL, f->x + i,
                   chunk_end(f, end) - i);
}

void cpu_update_step(struct kctx *ctx, const struct update_scalars *s, float *p, float *m, float *v,
                     const float *g, size_t n)
{
    run_chunks(ctx, &(struct flat){.a = p, .b = m, .c = v, .x = g, .n = n, .scalars = s}, update_chunks);
}
