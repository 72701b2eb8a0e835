/* batchnorm.c - batch normalisation: each thread sums over blocks of channels; the rest runs by rows. */
#include "kernels/batchnorm.h"
#include "kernels/cpu/ops.h"
#include "kernels/cpu/run.h"

#include <math.h>
#include <string.h>

enum { ROWS = 64 }; /* a unit of what goes by rows */

int batchnorm_check(const struct batchnorm_shape *s, struct err *err)
{
    if (check_range("batchnorm", "rows", s->rows, 1, INT32_MAX, err) < 0 ||
        check_range("batchnorm", "channels", s->channels, 1, INT32_MAX - ISA_COLS, err) < 0)
        return -1;
    return check_elements("batchnorm", "input", (int[]){s->rows, s->channels, 1, 1}, err);
}

struct job {
    const struct batchnorm_shape *s;
    const struct isa_ops *ops;
    bool train;
    float *scale, *shift; /* scratch (C): of the output, or of the input's gradient */
    float *dmean, *dvar;  /* scratch (C) */
    float *out, *mean, *rstd;
    float *running_mean, *running_var;
    float *din, *dweight, *dbias;
    const float *in, *weight, *bias, *dout;
    const float *in_mean, *in_rstd; /* backward */
};

static void take_scratch(struct job *j, struct scratch *w)
{
    size_t n = (size_t)j->s->channels;
    j->scale = scratch_floats(w, n);
    j->shift = scratch_floats(w, n);
    j->dmean = scratch_floats(w, n);
    j->dvar = scratch_floats(w, n);
}

size_t batchnorm_workspace_bytes(const struct batchnorm_shape *s)
{
    struct job j = {.s = s};
    struct scratch w = {.counting = true};
    take_scratch(&j, &w);
    return w.used_bytes;
}

static int blocks(int n, int size)
{
    return (n - 1) / size + 1;
}

static int columns_of(const struct job *j, int block)
{
    int rest = j->s->channels - block * ISA_COLS;
    return rest < ISA_COLS ? rest : ISA_COLS;
}

/* Of the columns from c on: the batch's mean and variance, and what the running ones become. */
static void measure(const struct job *j, ptrdiff_t c, int n)
{
    const struct batchnorm_shape *s = j->s;
    double sum[ISA_COLS] = {0}, square[ISA_COLS] = {0};
    j->ops->cols_sum(sum, j->in + c, s->channels, s->rows, n);
    for (int i = 0; i < n; i++)
        j->mean[c + i] = (float)(sum[i] / s->rows);
    j->ops->cols_square(square, j->in + c, j->mean + c, s->channels, s->rows, n);
    for (int i = 0; i < n; i++) {
        double var = square[i] / s->rows;
        double of_sample = s->rows > 1 ? square[i] / (s->rows - 1) : var;
        double keep = 1 - s->momentum;
        float *m = &j->running_mean[c + i], *v = &j->running_var[c + i];
        *m = (float)(keep * (double)*m + s->momentum * (double)j->mean[c + i]);
        *v = (float)(keep * (double)*v + s->momentum * of_sample);
        j->rstd[c + i] = (float)(1 / sqrt(var + s->eps));
    }
}

static void forward_columns(void *arg, int begin, int end)
{
    const struct job *j = arg;
    for (int b = begin; b < end; b++) {
        ptrdiff_t c = (ptrdiff_t)b * ISA_COLS;
        int n = columns_of(j, b);
        if (j->train)
            measure(j, c, n);
        for (ptrdiff_t i = c; i < c + n; i++) {
            if (!j->train) {
                j->mean[i] = j->running_mean[i];
                j->rstd[i] = (float)(1 / sqrt((double)j->running_var[i] + j->s->eps));
            }
            j->scale[i] = j->weight[i] * j->rstd[i];
            j->shift[i] = j->bias[i] - j->mean[i] * j->scale[i];
        }
    }
}

static int rows_end(const struct job *j, int end)
{
    return end * ROWS < j->s->rows ? end * ROWS : j->s->rows;
}

static void forward_rows(void *arg, int begin, int end)
{
    const struct job *j = arg;
    ptrdiff_t at = (ptrdiff_t)begin * ROWS * j->s->channels;
    j->ops->scale_shift(j->out + at, j->in + at, j->scale, j->shift, rows_end(j, end) - begin * ROWS,
                        j->s->channels);
}

void cpu_batchnorm_forward(struct kctx *ctx, const struct batchnorm_shape *s, bool train, float *out,
                           float *mean, float *rstd, float *running_mean, float *running_var, const float *in,
                           const float *weight, const float *bias)
{
    struct job j = {.s = s,
                    .ops = kctx_ops(ctx),
                    .train = train,
                    .out = out,
                    .mean = mean,
                    .rstd = rstd,
                    .running_mean = running_mean,
                    .running_var = running_var,
                    .in = in,
                    .weight = weight,
                    .bias = bias};
    struct scratch w = scratch_open(ctx);
    take_scratch(&j, &w);
    kctx_run(ctx, blocks(s->channels, ISA_COLS), forward_columns, &j);
    kctx_run(ctx, blocks(s->rows, ROWS), forward_rows, &j);
}

static void backward_columns(void *arg, int begin, int end)
{
    const struct job *j = arg;
    const struct batchnorm_shape *s = j->s;
    for (int b = begin; b < end; b++) {
        ptrdiff_t c = (ptrdiff_t)b * ISA_COLS;
        int n = columns_of(j, b);
        double sum[ISA_COLS] = {0}, dot[ISA_COLS] = {0};
        j->ops->cols_sum(sum, j->dout + c, s->channels, s->rows, n);
        j->ops->cols_dot(dot, j->dout + c, j->in + c, j->in_mean + c, s->channels, s->rows, n);
        for (int i = 0; i < n; i++) {
            double rstd = (double)j->in_rstd[c + i];
            j->dbias[c + i] = (float)sum[i];
            j->dweight[c + i] = (float)(dot[i] * rstd);
            j->scale[c + i] = j->weight[c + i] * j->in_rstd[c + i];
            /* Running statistics do not depend on the batch. */
            j->dmean[c + i] = j->train ? (float)(sum[i] / s->rows) : 0;
            j->dvar[c + i] = j->train ? (float)(dot[i] * rstd * rstd / s->rows) : 0;
        }
    }
}

static void backward_rows(void *arg, int begin, int end)
{
    const struct job *j = arg;
    ptrdiff_t at = (ptrdiff_t)begin * ROWS * j->s->channels;
    struct isa_batchnorm b = {.mean = j->in_mean, .scale = j->scale, .dmean = j->dmean, .dvar = j->dvar};
    j->ops->batchnorm_grad(j->din + at, j->dout + at, j->in + at, &b, rows_end(j, end) - begin * ROWS,
                           j->s->channels);
}

void cpu_batchnorm_backward(struct kctx *ctx, const struct batchnorm_shape *s, bool train, float *din,
                            float *dweight, float *dbias, const float *dout, const float *in,
                            const float *mean, const float *rstd, const float *weight)
{
    struct job j = {.s = s,
                    .ops = kctx_ops(ctx),
                    .train = train,
                    .din = din,
                    .dweight = dweight,
                    .dbias = dbias,
                    .in = in,
                    .weight = weight,
                    .dout = dout,
                    .in_mean = mean,
                    .in_rstd = rstd};
    struct scratch w = scratch_open(ctx);
    take_scratch(&j, &w);
    kctx_run(ctx, blocks(s->channels, ISA_COLS), backward_columns, &j);
    if (din)
        kctx_run(ctx, blocks(s->rows, ROWS), backward_rows, &j);
}
