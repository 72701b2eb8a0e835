/* decoder.c - run a GPT-2's blocks for generation: all positions of a prompt at once, later tokens on top of the kept
 * keys and values. */
#include "tools/generate/decoder_state.h"

#include "kernels/add.h"
#include "kernels/gelu.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void decoder_rewind(struct decoder *d, int len)
{
    if (len < 0 || len > d->len)
        abort();
    d->len = len;
    d->taken = 0;
}

/* Sums of their own, so that the compiler may keep them side by side. */
static float dot(const float *a, const float *b, int n)
{
    enum { SUMS = 16 };
    float part[SUMS] = {0};
    float sum = 0;
    int i = 0;

    for (; i + SUMS <= n; i += SUMS)
        for (int k = 0; k < SUMS; k++)
            part[k] += a[i + k] * b[i + k];
    for (; i < n; i++)
        sum += a[i] * b[i];
    for (int k = 0; k < SUMS; k++)
        sum += part[k];
    return sum;
}

/* What one head at position `at` takes of all positions so far: by how well its query goes with their keys. */
static void attend_head(struct decoder *d, const struct block *b, int head, int row, int at)
{
    const int size = d->width / d->heads;
    const float *query = d->qkv + 3 * (ptrdiff_t)row * d->width + head * size;
    const float scale = 1.0f / sqrtf((float)size);
    float *out = d->mixed + (ptrdiff_t)row * d->width + head * size;
    float most = -INFINITY;
    float sum = 0;

    for (int t = 0; t <= at; t++) {
        d->scores[t] = dot(query, b->keys + (ptrdiff_t)t * d->width + head * size, size) * scale;
        most = fmaxf(most, d->scores[t]);
    }
    memset(out, 0, (size_t)size * sizeof(*out));
    for (int t = 0; t <= at; t++) {
        const float *value = b->values + (ptrdiff_t)t * d->width + head * size;
        float weight = expf(d->scores[t] - most);
        sum += weight;
        for (int i = 0; i < size; i++)
            out[i] += weight * value[i];
    }
    for (int i = 0; i < size; i++)
        out[i] /= sum;
}

static void attend(struct decoder *d, const struct block *b, int n)
{
    const struct attention_shape whole = decoder_attention(d, n);

    if (!d->len && n > 1) {
        attention_forward(d->ctx, &whole, d->mixed, d->lse, d->qkv);
        return;
    }
    for (int row = 0; row < n; row++)
        for (int head = 0; head < d->heads; head++)
            attend_head(d, b, head, row, d->len + row);
}

static void keep(struct decoder *d, const struct block *b, int n)
{
    const ptrdiff_t c = d->width;

    for (int row = 0; row < n; row++) {
        const float *from = d->qkv + 3 * row * c;
        memcpy(b->keys + (d->len + row) * c, from + c, (size_t)c * sizeof(float));
        memcpy(b->values + (d->len + row) * c, from + 2 * c, (size_t)c * sizeof(float));
    }
}

static void apply(struct decoder *d, const struct pair *p, const struct linear_shape *s, const float *from,
                  float *to)
{
    linear_forward(d->ctx, s, to, from, p->weight, p->bias, false);
}

static void normalise(struct decoder *d, const struct pair *p, const float *from, int n)
{
    const struct layernorm_shape s = decoder_norm(d, n);

    layernorm_forward(d->ctx, &s, d->norm, d->mean, d->rstd, from, p->weight, p->bias);
}

static void pass_block(struct decoder *d, const struct block *b, int n)
{
    const int c = d->width;
    const size_t all = (size_t)n * (size_t)c;
    const struct linear_shape attn = decoder_linear(n, c, 3 * c), proj = decoder_linear(n, c, c);
    const struct linear_shape fc = decoder_linear(n, c, 4 * c), mlp_proj = decoder_linear(n, 4 * c, c);

    normalise(d, &b->part[LN_1], d->x, n);
    apply(d, &b->part[ATTN], &attn, d->norm, d->qkv);
    keep(d, b, n);
    attend(d, b, n);
    apply(d, &b->part[PROJ], &proj, d->mixed, d->norm);
    add(d->ctx, d->x, d->x, d->norm, all);
    normalise(d, &b->part[LN_2], d->x, n);
    apply(d, &b->part[FC], &fc, d->norm, d->wide);
    gelu_forward(d->ctx, GELU_TANH, d->act, d->wide, 4 * all);
    apply(d, &b->part[MLP_PROJ], &mlp_proj, d->act, d->norm);
    add(d->ctx, d->x, d->x, d->norm, all);
}

void decoder_take(struct decoder *d, const uint16_t *token, int n)
{
    const ptrdiff_t c = d->width;

    if (n < 1 || n > d->positions - d->len)
        abort();
    for (int row = 0; row < n; row++) {
        if (token[row] >= d->vocab)
            abort();
        const float *wte = d->wte + token[row] * c;
        const float *wpe = d->wpe + (d->len + row) * c;
        for (int i = 0; i < d->width; i++)
            d->x[row * c + i] = wte[i] + wpe[i];
    }
    for (int i = 0; i < d->blocks; i++)
        pass_block(d, &d->block[i], n);
    d->len += n;
    d->taken = n;
}

const float *decoder_logits(struct decoder *d, int at, int rows)
{
    const struct pair head = {d->wte, NULL};
    const struct linear_shape s = decoder_linear(rows, d->width, d->vocab);

    if (at < 0 || rows < 1 || rows > DECODER_LOGITS_ROWS || rows > d->taken - at)
        abort();
    normalise(d, &d->ln_f, d->x + (ptrdiff_t)at * d->width, rows);
    apply(d, &head, &s, d->norm, d->logits);
    return d->logits;
}
