/* layernorm.c - layer normalisation: rows one by one; the parameters' gradients by blocks of channels over all rows. */
#include "kernels/layernorm.h"
#include "kernels/cpu/ops.h"
#include "kernels/cpu/run.h"

int layernorm_check(const struct layernorm_shape *s, struct err *err)
{
    if (check_range("layernorm", "rows", s->rows, 1, INT32_MAX, err) < 0 ||
        check_range("layernorm", "channels", s->channels, 1, INT32_MAX - ISA_COLS, err) < 0)
        return -1;
    return check_elements("layernorm", "input", (int[]){s->rows, s->channels, 1, 1}, err);
}

struct job {
    const struct layernorm_shape *s;
    const struct isa_ops *ops;
    float *out, *mean, *rstd;
    float *din, *dweight, *dbias;
    const float *in, *weight, *bias, *dout;
    const float *in_mean, *in_rstd; /* backward */
};

static void forward_rows(void *arg, int begin, int end)
{
    const struct job *j = arg;
    const int n = j->s->channels;
    for (ptrdiff_t r = begin; r < end; r++)
        j->ops->layernorm(j->out + r * n, j->mean + r, j->rstd + r, j->in + r * n, j->weight, j->bias,
                          j->s->eps, n);
}

void cpu_layernorm_forward(struct kctx *ctx, const struct layernorm_shape *s, void *out, float *mean,
                           float *rstd, const void *in, const float *weight, const float *bias)
{
    struct job j = {.s = s,
                    .ops = kctx_ops(ctx),
                    .out = out,
                    .mean = mean,
                    .rstd = rstd,
                    .in = in,
                    .weight = weight,
                    .bias = bias};
    kctx_run(ctx, s->rows, forward_rows, &j);
}

static void backward_columns(void *arg, int begin, int end)
{
    const struct job *j = arg;
    const struct layernorm_shape *s = j->s;
    for (int b = begin; b < end; b++) {
        ptrdiff_t c = (ptrdiff_t)b * ISA_COLS;
        int n = s->channels - c < ISA_COLS ? (int)(s->channels - c) : ISA_COLS;
        double sum[ISA_COLS] = {0}, dot[ISA_COLS] = {0};
        j->ops->cols_sum(sum, j->dout + c, s->channels, s->rows, n);
        j->ops->cols_dot_rows(dot, j->dout + c, j->in + c, j->in_mean, j->in_rstd, s->channels, s->rows, n);
        for (int i = 0; i < n; i++) {
            j->dweight[c + i] = (float)dot[i];
            if (j->dbias)
                j->dbias[c + i] = (float)sum[i];
        }
    }
}

static void backward_rows(void *arg, int begin, int end)
{
    const struct job *j = arg;
    const int n = j->s->channels;
    for (ptrdiff_t r = begin; r < end; r++)
        j->ops->layernorm_grad(j->din + r * n, j->dout + r * n, j->in + r * n, j->weight, j->in_mean[r],
                               j->in_rstd[r], n);
}

void cpu_layernorm_backward(struct kctx *ctx, const struct layernorm_shape *s, void *din, float *dweight,
                            float *dbias, const void *dout, const void *more, const void *in,
                            const float *mean, const float *rstd, const float *weight)
{
    struct job j = {.s = s,
                    .ops = kctx_ops(ctx),
                    .din = din,
                    .dweight = dweight,
                    .dbias = dbias,
                    .in = in,
                    .weight = weight,
                    .dout = dout,
                    .in_mean = mean,
                    .in_rstd = rstd};
    kctx_run(ctx, (s->channels - 1) / ISA_COLS + 1, backward_columns, &j);
    if (din)
        kctx_run(ctx, s->rows, backward_rows, &j);
    if (din && more)
        cpu_add(ctx, din, din, more, (size_t)s->rows * (size_t)s->channels);
}
