/* decoder.c - the blocks by hand, for a batch of one position. */
#include "trainer/generate/decoder.h"

#include "kernels/gelu.h"
#include "kernels/layernorm.h"
#include "kernels/linear.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LN_1, ATTN, PROJ, LN_2, FC, MLP_PROJ, BLOCK_PARTS };

/* A weight and its bias. */
struct pair {
    const float *weight, *bias;
};

struct block {
    struct pair part[BLOCK_PARTS];
    float *keys, *values; /* (positions, width) each */
};

struct decoder {
    struct kctx *ctx;
    int vocab, positions, width, heads, blocks, len;
    const float *wte, *wpe;
    struct pair ln_f;
    struct block *block;
    float *memory; /* of all below, and of keys and values */
    float *x, *norm, *qkv, *mixed, *wide, *act, *scores, *logits;
};

static const struct state_row *row_of(struct model *m, const char *name)
{
    int rows;
    const struct state_row *row = model_state(m, &rows);

    for (int i = 0; i < rows; i++)
        if (strcmp(row[i].name, name) == 0)
            return &row[i];
    return NULL;
}

static int find(struct model *m, const char *name, int32_t dims, int64_t rows, int64_t width,
                const float **ret, struct err *err)
{
    const struct state_row *row = row_of(m, name);

    if (!row || row->type != STATE_F32 || row->dims != dims || row->dim[0] != rows ||
        (dims == 2 && row->dim[1] != width))
        return err_set(err, ERR_INVALID, "%s: not in the model, or of another shape than a GPT-2's", name);
    *ret = row->data;
    return 0;
}

static int find_block(struct decoder *d, struct model *m, int i, struct err *err)
{
    static const struct {
        const char *name;
        int32_t dims;
        int out, in; /* widths */
    } parts[BLOCK_PARTS] = {
        [LN_1] = {"ln_1", 1, 1, 0}, [ATTN] = {"attn.c_attn", 2, 3, 1}, [PROJ] = {"attn.c_proj", 2, 1, 1},
        [LN_2] = {"ln_2", 1, 1, 0}, [FC] = {"mlp.c_fc", 2, 4, 1},      [MLP_PROJ] = {"mlp.c_proj", 2, 1, 4},
    };
    char name[PARAM_NAME_BYTES];

    for (int p = 0; p < BLOCK_PARTS; p++) {
        struct pair *to = &d->block[i].part[p];
        int64_t out = (int64_t)parts[p].out * d->width;
        snprintf(name, sizeof(name), "transformer.h.%d.%s.weight", i, parts[p].name);
        if (find(m, name, parts[p].dims, out, (int64_t)parts[p].in * d->width, &to->weight, err))
            return -1;
        snprintf(name, sizeof(name), "transformer.h.%d.%s.bias", i, parts[p].name);
        if (find(m, name, 1, out, 0, &to->bias, err))
            return -1;
    }
    return 0;
}

static int find_all(struct decoder *d, struct model *m, struct err *err)
{
    const struct state_row *wte = row_of(m, "transformer.wte.weight");
    const struct state_row *wpe = row_of(m, "transformer.wpe.weight");
    char name[PARAM_NAME_BYTES];

    if (!wte || !wpe || wte->dims != 2 || wpe->dims != 2 || wte->dim[1] != wpe->dim[1] ||
        wte->dim[1] > 1 << 20)
        return err_set(err, ERR_INVALID, "the model is no GPT-2: expected wte.weight and wpe.weight");
    d->vocab = (int)wte->dim[0];
    d->positions = (int)wpe->dim[0];
    d->width = (int)wte->dim[1];
    d->wte = wte->data;
    d->wpe = wpe->data;
    do
        snprintf(name, sizeof(name), "transformer.h.%d.ln_1.weight", d->blocks);
    while (row_of(m, name) && ++d->blocks);
    if (d->heads < 1 || d->width % d->heads)
        return err_set(err, ERR_INVALID, "heads: %d, expected a divisor of the width (%d)", d->heads,
                       d->width);
    d->block = calloc((size_t)d->blocks + 1, sizeof(*d->block));
    if (!d->block)
        return err_set(err, ERR_FATAL, "no memory for %d blocks", d->blocks);
    for (int i = 0; i < d->blocks; i++)
        if (find_block(d, m, i, err))
            return -1;
    return find(m, "transformer.ln_f.weight", 1, d->width, 0, &d->ln_f.weight, err) ||
                   find(m, "transformer.ln_f.bias", 1, d->width, 0, &d->ln_f.bias, err)
               ? -1
               : 0;
}

static struct linear_shape shape_of(int in, int out)
{
    return (struct linear_shape){.rows = 1, .in = in, .out = out};
}

static int reserve(struct decoder *d, struct err *err)
{
    const int c = d->width;
    const struct linear_shape all[] = {shape_of(c, 3 * c), shape_of(c, c), shape_of(c, 4 * c),
                                       shape_of(4 * c, c), shape_of(c, d->vocab)};
    size_t most = 0;

    for (size_t i = 0; i < ARRAY_LEN(all); i++) {
        if (linear_check(&all[i], err))
            return -1;
        size_t bytes = linear_workspace_bytes(&all[i]);
        most = bytes > most ? bytes : most;
    }
    return kctx_reserve(d->ctx, most, err);
}

static int take_memory(struct decoder *d, struct err *err)
{
    const size_t c = (size_t)d->width;
    const size_t kept = (size_t)d->positions * c;
    const size_t all =
        (1 + 1 + 3 + 1 + 4 + 4) * c + (size_t)d->positions + (size_t)d->vocab + 2 * kept * (size_t)d->blocks;

    d->memory = calloc(all, sizeof(float));
    if (!d->memory)
        return err_set(err, ERR_FATAL, "no memory for the keys and values of %d positions", d->positions);
    d->x = d->memory;
    d->norm = d->x + c;
    d->qkv = d->norm + c;
    d->mixed = d->qkv + 3 * c;
    d->wide = d->mixed + c;
    d->act = d->wide + 4 * c;
    d->scores = d->act + 4 * c;
    d->logits = d->scores + d->positions;
    float *at = d->logits + d->vocab;
    for (int i = 0; i < d->blocks; i++, at += 2 * kept) {
        d->block[i].keys = at;
        d->block[i].values = at + kept;
    }
    return 0;
}

struct decoder *decoder_make(struct model *m, struct kctx *ctx, int heads, struct err *err)
{
    cleanup_decoder struct decoder *d = calloc(1, sizeof(*d));

    if (!d) {
        err_set(err, ERR_FATAL, "no memory for a decoder");
        return NULL;
    }
    d->ctx = ctx;
    d->heads = heads;
    if (find_all(d, m, err) || reserve(d, err) || take_memory(d, err))
        return NULL;
    return TAKE(d);
}

void decoder_free(struct decoder *d)
{
    if (!d)
        return;
    free(d->block);
    free(d->memory);
    free(d);
}

int decoder_vocab(const struct decoder *d)
{
    return d->vocab;
}

int decoder_positions(const struct decoder *d)
{
    return d->positions;
}

int decoder_len(const struct decoder *d)
{
    return d->len;
}

void decoder_clear(struct decoder *d)
{
    d->len = 0;
}

/* What one head takes of all positions so far: by how well the query goes with their keys. */
static void attend_head(struct decoder *d, const struct block *b, int head)
{
    const int size = d->width / d->heads;
    const float *query = d->qkv + head * size;
    const float scale = 1.0f / sqrtf((float)size);
    float *out = d->mixed + head * size;
    float most = -INFINITY;
    float sum = 0;

    for (int t = 0; t <= d->len; t++) {
        const float *key = b->keys + (ptrdiff_t)t * d->width + head * size;
        float dot = 0;
        for (int i = 0; i < size; i++)
            dot += query[i] * key[i];
        d->scores[t] = dot * scale;
        most = fmaxf(most, d->scores[t]);
    }
    memset(out, 0, (size_t)size * sizeof(*out));
    for (int t = 0; t <= d->len; t++) {
        const float *value = b->values + (ptrdiff_t)t * d->width + head * size;
        float weight = expf(d->scores[t] - most);
        sum += weight;
        for (int i = 0; i < size; i++)
            out[i] += weight * value[i];
    }
    for (int i = 0; i < size; i++)
        out[i] /= sum;
}

static void apply(struct decoder *d, const struct pair *p, int in, int out, const float *from, float *to)
{
    struct linear_shape s = shape_of(in, out);

    linear_forward(d->ctx, &s, to, from, p->weight, p->bias, false);
}

static void normalise(struct decoder *d, const struct pair *p)
{
    const struct layernorm_shape s = {.rows = 1, .channels = d->width, .eps = 1e-5};
    float mean, rstd;

    layernorm_forward(d->ctx, &s, d->norm, &mean, &rstd, d->x, p->weight, p->bias);
}

static void add(struct decoder *d, const float *more)
{
    for (int i = 0; i < d->width; i++)
        d->x[i] += more[i];
}

static void pass_block(struct decoder *d, const struct block *b)
{
    const int c = d->width;
    const size_t bytes = (size_t)c * sizeof(float);

    normalise(d, &b->part[LN_1]);
    apply(d, &b->part[ATTN], c, 3 * c, d->norm, d->qkv);
    memcpy(b->keys + (ptrdiff_t)d->len * c, d->qkv + c, bytes);
    memcpy(b->values + (ptrdiff_t)d->len * c, d->qkv + 2 * (ptrdiff_t)c, bytes);
    for (int head = 0; head < d->heads; head++)
        attend_head(d, b, head);
    apply(d, &b->part[PROJ], c, c, d->mixed, d->norm);
    add(d, d->norm);
    normalise(d, &b->part[LN_2]);
    apply(d, &b->part[FC], c, 4 * c, d->norm, d->wide);
    gelu_forward(d->ctx, GELU_TANH, d->act, d->wide, 4 * (size_t)c);
    apply(d, &b->part[MLP_PROJ], 4 * c, c, d->act, d->norm);
    add(d, d->norm);
}

const float *decoder_next(struct decoder *d, int token, bool last)
{
    const struct pair head = {d->wte, NULL};

    if (token < 0 || token >= d->vocab || d->len >= d->positions)
        abort();
    memcpy(d->x, d->wte + (ptrdiff_t)token * d->width, (size_t)d->width * sizeof(float));
    add(d, d->wpe + (ptrdiff_t)d->len * d->width);
    for (int i = 0; i < d->blocks; i++)
        pass_block(d, &d->block[i]);
    d->len++;
    if (!last)
        return NULL;
    normalise(d, &d->ln_f);
    apply(d, &head, d->width, d->vocab, d->norm, d->logits);
    return d->logits;
}
