/* reference_sequence.c - the kinds that take sequences. */
#include "reference_parts.h"

#include "test.h"

#include "common/cleanup.h"

#include <math.h>
#include <string.h>

size_t reference_embedding(struct reference *r, const struct layer_spec *l, const double *w)
{
    static struct reference in;
    const int vocab = reference_integer(l, "vocab"), width = reference_integer(l, "width"),
              time = r->shape.rows;

    in = *r;
    reference_reshape(r, (struct shape){.rows = time, .cols = 1, .channels = width, .sequence = true});
    r->table = w;
    EACH(r, b, t, x, c)
    {
        int token = (int)*cell(&in, b, t, 0, 0);
        *cell(r, b, t, x, c) = w[token * width + c] + w[(vocab + t) * width + c];
    }
    return (size_t)((vocab + time) * width);
}

/* Into `out` (time, width): each place looks at itself and what came before. qkv (time, 3 width). */
static void attend(double *out, const double *qkv, int time, int width, int heads)
{
    const int size = width / heads;

    for (int h = 0; h < heads; h++)
        for (int t = 0; t < time; t++) {
            double weight[64], sum = 0;
            assert_true(time <= (int)ARRAY_LEN(weight));
            for (int u = 0; u <= t; u++) {
                double dot = 0;
                for (int i = 0; i < size; i++)
                    dot += qkv[t * 3 * width + h * size + i] * qkv[u * 3 * width + width + h * size + i];
                sum += weight[u] = exp(dot / sqrt(size));
            }
            for (int i = 0; i < size; i++) {
                double *to = &out[t * width + h * size + i];
                *to = 0;
                for (int u = 0; u <= t; u++)
                    *to += weight[u] / sum * qkv[u * 3 * width + 2 * width + h * size + i];
            }
        }
}

/* One sample's (time, width) through a norm, whose parameters are at w. */
static void norm_rows(double *to, const double *from, int time, int width, const double *w)
{
    memcpy(to, from, (size_t)(time * width) * sizeof(*to));
    for (int t = 0; t < time; t++) {
        reference_normalise(to + t * width, (size_t)width, 1, 1e-5);
        for (int c = 0; c < width; c++)
            to[t * width + c] = to[t * width + c] * w[c] + w[width + c];
    }
}

size_t reference_gpt2_block(struct reference *r, const struct layer_spec *l, const double *w)
{
    static double norm[REFERENCE_CELLS], wide[REFERENCE_CELLS], back[REFERENCE_CELLS];
    const int time = r->shape.rows, n = r->shape.channels;
    const size_t rows = (size_t)time;
    const double *attn = w + 2 * n, *proj = attn + 3 * n * n + 3 * n, *ln_2 = proj + n * n + n;
    const double *fc = ln_2 + 2 * n, *down = fc + 4 * n * n + 4 * n;

    assert_true(time * 4 * n <= REFERENCE_CELLS);
    for (int b = 0; b < r->batch; b++) {
        double *x = r->value + b * time * n;
        norm_rows(norm, x, time, n, w);
        reference_product(wide, norm, rows, n, 3 * n, attn, attn + 3 * n * n);
        attend(norm, wide, time, n, reference_integer(l, "heads"));
        reference_product(back, norm, rows, n, n, proj, proj + n * n);
        for (int i = 0; i < time * n; i++)
            x[i] += back[i];
        norm_rows(norm, x, time, n, ln_2);
        reference_product(wide, norm, rows, n, 4 * n, fc, fc + 4 * n * n);
        for (int i = 0; i < time * 4 * n; i++)
            wide[i] = reference_gelu(wide[i], true);
        reference_product(back, wide, rows, 4 * n, n, down, down + 4 * n * n);
        for (int i = 0; i < time * n; i++)
            x[i] += back[i];
    }
    return (size_t)(down - w) + (size_t)(4 * n * n + n);
}

size_t reference_lm_head(struct reference *r, const struct layer_spec *l, const double *w)
{
    static struct reference in;
    const int vocab = reference_integer(l, "vocab"), time = r->shape.rows, n = r->shape.channels;

    (void)w;
    in = *r;
    reference_reshape(r, (struct shape){.rows = time, .cols = 1, .channels = vocab, .sequence = true});
    reference_product(r->value, in.value, (size_t)(r->batch * time), n, vocab, r->table, NULL);
    return 0;
}
