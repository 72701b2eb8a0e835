/* norm.c - sums of rows and columns in f64 and in a fixed order, for normalisation layers. */
#include "kernels/cpu/isa/local.h"
#include "kernels/cpu/isa/scalar.h"

enum { LANES = 8 };

/* Columns as one block of constant width where they fill it: the loop over them becomes vectors. */
#define EACH_COLUMN(c, cols, body)                                                                           \
    if ((cols) == ISA_COLS) {                                                                                \
        for (int c = 0; c < ISA_COLS; c++) {                                                                 \
            body                                                                                             \
        }                                                                                                    \
    } else {                                                                                                 \
        for (int c = 0; c < (cols); c++) {                                                                   \
            body                                                                                             \
        }                                                                                                    \
    }

void ISA_FN(cols_sum)(double *restrict sum, const float *restrict x, ptrdiff_t ld, int rows, int cols)
{
    for (ptrdiff_t r = 0; r < rows; r++)
        EACH_COLUMN(c, cols, sum[c] += (double)x[r * ld + c];)
}

void ISA_FN(cols_square)(double *restrict sum, const float *restrict x, const float *restrict mean,
                         ptrdiff_t ld, int rows, int cols)
{
    for (ptrdiff_t r = 0; r < rows; r++)
        EACH_COLUMN(c, cols, double d = (double)x[r * ld + c] - (double)mean[c]; sum[c] += d * d;)
}

void ISA_FN(cols_dot)(double *restrict sum, const float *restrict a, const float *restrict x,
                      const float *restrict mean, ptrdiff_t ld, int rows, int cols)
{
    for (ptrdiff_t r = 0; r < rows; r++)
        EACH_COLUMN(c, cols, sum[c] += (double)a[r * ld + c] * (double)(x[r * ld + c] - mean[c]);)
}

void ISA_FN(cols_dot_rows)(double *restrict sum, const float *restrict a, const float *restrict x,
                           const float *restrict mean, const float *restrict rstd, ptrdiff_t ld, int rows,
                           int cols)
{
    for (ptrdiff_t r = 0; r < rows; r++) {
        float m = mean[r];
        float s = rstd[r];
        EACH_COLUMN(c, cols, sum[c] += (double)a[r * ld + c] * (double)((x[r * ld + c] - m) * s);)
    }
}

void ISA_FN(scale_shift)(float *restrict out, const float *restrict x, const float *restrict scale,
                         const float *restrict shift, int rows, int cols)
{
    for (ptrdiff_t r = 0; r < rows; r++)
        for (ptrdiff_t c = 0; c < cols; c++)
            out[r * cols + c] = fused(x[r * cols + c], scale[c], shift[c]);
}

void ISA_FN(batchnorm_grad)(float *restrict din, const float *restrict dout, const float *restrict x,
                            const struct isa_batchnorm *b, int rows, int cols)
{
    const struct isa_batchnorm k = *b;
    for (ptrdiff_t r = 0; r < rows; r++)
        for (ptrdiff_t c = 0; c < cols; c++) {
            float d = dout[r * cols + c] - k.dmean[c];
            din[r * cols + c] = k.scale[c] * fused(k.mean[c] - x[r * cols + c], k.dvar[c], d);
        }
}

static double lanes_sum(const double *lane)
{
    return ((lane[0] + lane[4]) + (lane[2] + lane[6])) + ((lane[1] + lane[5]) + (lane[3] + lane[7]));
}

double ISA_FN(square_sum)(const float *x, size_t n)
{
    double sum[LANES] = {0};
    size_t whole = n / LANES * LANES;
    for (size_t i = 0; i < whole; i += LANES)
        for (int l = 0; l < LANES; l++)
            sum[l] += (double)x[i + (size_t)l] * (double)x[i + (size_t)l];
    for (size_t i = whole; i < n; i++)
        sum[i - whole] += (double)x[i] * (double)x[i];
    return lanes_sum(sum);
}

void ISA_FN(layernorm)(float *restrict out, float *restrict mean, float *restrict rstd,
                       const float *restrict x, const float *restrict weight, const float *restrict bias,
                       double eps, int n)
{
    double sum[LANES] = {0};
    double square[LANES] = {0};
    int whole = n / LANES * LANES;
    for (int i = 0; i < whole; i += LANES)
        for (int l = 0; l < LANES; l++)
            sum[l] += (double)x[i + l];
    for (int i = whole; i < n; i++)
        sum[i - whole] += (double)x[i];
    double m = lanes_sum(sum) / n;
    for (int i = 0; i < whole; i += LANES)
        for (int l = 0; l < LANES; l++) {
            double d = (double)x[i + l] - m;
            square[l] += d * d;
        }
    for (int i = whole; i < n; i++)
        square[i - whole] += ((double)x[i] - m) * ((double)x[i] - m);
    float m32 = (float)m;
    float s32 = (float)(1 / __builtin_sqrt(lanes_sum(square) / n + eps));
    for (int i = 0; i < n; i++)
        out[i] = fused((x[i] - m32) * s32, weight[i], bias ? bias[i] : 0.0F);
    *mean = m32;
    *rstd = s32;
}

void ISA_FN(layernorm_grad)(float *restrict din, const float *restrict dout, const float *restrict x,
                            const float *restrict weight, float mean, float rstd, int n)
{
    double sum[LANES] = {0};
    double dot[LANES] = {0};
    int whole = n / LANES * LANES;
    for (int i = 0; i < whole; i += LANES)
        for (int l = 0; l < LANES; l++) {
            float d = dout[i + l] * weight[i + l];
            sum[l] += (double)d;
            dot[l] += (double)d * (double)((x[i + l] - mean) * rstd);
        }
    for (int i = whole; i < n; i++) {
        float d = dout[i] * weight[i];
        sum[i - whole] += (double)d;
        dot[i - whole] += (double)d * (double)((x[i] - mean) * rstd);
    }
    float dmean = (float)(lanes_sum(sum) / n);
    float dvar = (float)(lanes_sum(dot) / n);
    for (int i = 0; i < n; i++)
        din[i] = rstd * (dout[i] * weight[i] - dmean - (x[i] - mean) * rstd * dvar);
}
