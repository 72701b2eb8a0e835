/* openblas.c - the matrix products of a layer alone, by OpenBLAS: no bias, no ReLU, and the windows of a convolution are
 * copied into a matrix beforehand, for nothing. What it needs in a network is more than what is timed here. */

#include "peers.h"

#include <cblas.h>
#include <stdlib.h>
#include <string.h>

struct blas {
    const struct bench_layer *l;
    const struct bench_data *data;
    int rows, in, outs;
    float *windows; /* (rows, in): of each pixel (C, K_H, K_W), as a weight's */
    float *out, *dwindows, *dweight;
};

static void blas_free(void *p)
{
    struct blas *b = p;

    free(b->windows);
    free(b->out);
    free(b->dwindows);
    free(b->dweight);
    free(b);
}

/* Shapes of the presets only: stride 1, no padding, no dilation. */
static void copy_windows(const struct conv2d_shape *s, const float *in, float *to)
{
    for (int b = 0; b < s->batch; b++)
        for (int y = 0; y < conv2d_out_h(s); y++)
            for (int x = 0; x < conv2d_out_w(s); x++)
                for (int c = 0; c < s->in_c; c++)
                    for (int k = 0; k < s->k_h * s->k_w; k++) {
                        ptrdiff_t row = (ptrdiff_t)b * s->in_h + y + k / s->k_w;
                        *to++ = in[(row * s->in_w + x + k % s->k_w) * s->in_c + c];
                    }
}

static void *blas_make(const struct bench_layer *l, const struct bench_data *data, struct err *err)
{
    struct blas *b = calloc(1, sizeof(*b));

    (void)err;
    if (!b)
        abort();
    *b = (struct blas){.l = l, .data = data, .rows = (int)bench_pixels(&l->s)};
    b->in = (int)bench_window(&l->s);
    b->outs = l->s.out_c;
    const size_t windows = (size_t)b->rows * (size_t)b->in;
    b->windows = bench_floats(windows);
    copy_windows(&l->s, data->in, b->windows);
    b->out = bench_floats(bench_out(&l->s));
    b->dwindows = bench_floats(windows);
    b->dweight = bench_floats(bench_weight(&l->s));
    return b;
}

static void blas_forward(void *p)
{
    struct blas *b = p;

    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, b->rows, b->outs, b->in, 1, b->windows, b->in,
                b->data->weight, b->in, 0, b->out, b->outs);
}

static void blas_backward(void *p)
{
    struct blas *b = p;

    cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, b->outs, b->in, b->rows, 1, b->data->dout, b->outs,
                b->windows, b->in, 0, b->dweight, b->in);
    if (!b->l->first)
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, b->rows, b->in, b->outs, 1, b->data->dout,
                    b->outs, b->data->weight, b->in, 0, b->dwindows, b->in);
}

static void blas_result(void *p, const struct bench_result *to)
{
    const struct blas *b = p;
    const struct conv2d_shape *s = &b->l->s;

    for (size_t i = 0; i < bench_out(s); i++) {
        float v = b->out[i] + b->data->bias[i % (size_t)b->outs];
        to->out[i] = b->l->relu && v < 0 ? 0 : v;
    }
    memcpy(to->dweight, b->dweight, bench_weight(s) * sizeof(float));
    if (b->l->linear && !b->l->first)
        memcpy(to->din, b->dwindows, bench_in(s) * sizeof(float));
}

const char *bench_openblas_core(void)
{
    return openblas_get_corename();
}

const struct bench_peer bench_openblas = {
    "OpenBLAS, products alone", blas_make, blas_forward, blas_backward, blas_result, blas_free};
