/* rows.c - loops over rows of attention weights and class scores: softmax, its gradient, exponentials. */
#include "kernels/cpu/isa/exp.h"
#include "kernels/cpu/isa/local.h"

enum { LANES = 16 };

static float lanes_sum(float *lane)
{
    for (int half = LANES / 2; half; half /= 2)
        for (int l = 0; l < half; l++)
            lane[l] += lane[l + half];
    return lane[0];
}

/* Whole lanes: the row has room. */
static int fill(float *x, int n, int width)
{
    int end = (width + LANES - 1) / LANES * LANES;

    for (int i = n; i < end; i++)
        x[i] = -__builtin_inff();
    return end;
}

float ISA_FN(softmax_more)(float *x, int n, int width, float scale, float *most, float *sum)
{
    int end = fill(x, n, width);
    float top[LANES], add[LANES] = {0};
    float before = *most;
    float m = before;

    for (int l = 0; l < LANES; l++)
        top[l] = -__builtin_inff();
    for (int i = 0; i < end; i += LANES)
        for (int l = 0; l < LANES; l++)
            top[l] = top[l] > x[i + l] ? top[l] : x[i + l];
    for (int l = 0; l < LANES; l++)
        m = m > top[l] * scale ? m : top[l] * scale;
    for (int i = 0; i < end; i += LANES)
        for (int l = 0; l < LANES; l++) {
            float e = exp_down(x[i + l] * scale - m);
            x[i + l] = e;
            add[l] += e;
        }
    float share = exp_down(before - m);
    *most = m;
    *sum = fused(*sum, share, lanes_sum(add));
    return share;
}

void ISA_FN(softmax_again)(float *restrict x, float *restrict d, int n, int width, float scale, float lse,
                           float dot)
{
    int end = fill(x, n, width);

    for (int i = 0; i < end; i++) {
        float w = exp_down(x[i] * scale - lse);
        x[i] = w;
        d[i] = w * (d[i] - dot) * scale;
    }
    for (int i = n; i < end; i++)
        d[i] = 0; /* what lay there may be no number */
}

float ISA_FN(inner)(const float *restrict a, const float *restrict b, int n)
{
    float sum[LANES] = {0};
    int whole = n / LANES * LANES;

    for (int i = 0; i < whole; i += LANES)
        for (int l = 0; l < LANES; l++)
            sum[l] = fused(a[i + l], b[i + l], sum[l]);
    for (int i = whole; i < n; i++)
        sum[i - whole] = fused(a[i], b[i], sum[i - whole]);
    return lanes_sum(sum);
}

enum { BLOCK = 64 * LANES }; /* added up in f32 */

float ISA_FN(exp_row)(float *x, int n, double *ret_sum)
{
    float top[LANES];
    int whole = n / LANES * LANES;
    double sum = 0;

    for (int l = 0; l < LANES; l++)
        top[l] = -__builtin_inff();
    for (int i = 0; i < whole; i += LANES)
        for (int l = 0; l < LANES; l++)
            top[l] = top[l] > x[i + l] ? top[l] : x[i + l];
    for (int i = whole; i < n; i++)
        top[0] = top[0] > x[i] ? top[0] : x[i];
    float most = top[0];
    for (int l = 1; l < LANES; l++)
        most = most > top[l] ? most : top[l];
    for (int first = 0; first < whole; first += BLOCK) {
        float add[LANES] = {0};
        int end = first + BLOCK < whole ? first + BLOCK : whole;
        for (int i = first; i < end; i += LANES)
            for (int l = 0; l < LANES; l++) {
                float e = exp_down(x[i + l] - most);
                x[i + l] = e;
                add[l] += e;
            }
        sum += (double)lanes_sum(add);
    }
    for (int i = whole; i < n; i++) {
        x[i] = exp_down(x[i] - most);
        sum += (double)x[i];
    }
    *ret_sum = sum;
    return most;
}

void ISA_FN(scale_row)(float *x, float scale, size_t n)
{
    for (size_t i = 0; i < n; i++)
        x[i] *= scale;
}
