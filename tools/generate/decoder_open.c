/* decoder_open.c - bind a GPT-2's weights to the decoder's blocks by their names, and allocate its cache of keys and
 * values. */
#include "tools/generate/decoder_state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
        return err_set(err, ERR_INVALID, "the model is not a GPT-2: expected wte.weight and wpe.weight");
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
        return err_memory(err, "no memory for %d blocks", d->blocks);
    for (int i = 0; i < d->blocks; i++)
        if (find_block(d, m, i, err))
            return -1;
    return find(m, "transformer.ln_f.weight", 1, d->width, 0, &d->ln_f.weight, err) ||
                   find(m, "transformer.ln_f.bias", 1, d->width, 0, &d->ln_f.bias, err)
               ? -1
               : 0;
}

static int reserve(struct decoder *d, struct err *err)
{
    const int c = d->width;
    const int rows = d->positions;
    const struct linear_shape all[] = {decoder_linear(rows, c, 3 * c), decoder_linear(rows, c, c),
                                       decoder_linear(rows, c, 4 * c), decoder_linear(rows, 4 * c, c),
                                       decoder_linear(DECODER_LOGITS_ROWS, c, d->vocab)};
    const struct attention_shape attention = decoder_attention(d, rows);
    const struct layernorm_shape norm = decoder_norm(d, rows);

    if (attention_check(&attention, err) || layernorm_check(&norm, err))
        return -1;
    size_t most = attention_thread_bytes(&attention) * (size_t)kctx_threads(d->ctx);
    for (size_t i = 0; i < ARRAY_LEN(all); i++) {
        if (linear_check(&all[i], err))
            return -1;
        size_t bytes = linear_workspace_bytes(&all[i]);
        most = bytes > most ? bytes : most;
    }
    return kctx_reserve(d->ctx, most, err);
}

static float *part(float **at, size_t floats)
{
    float *p = *at;

    *at += floats;
    return p;
}

static int take_memory(struct decoder *d, struct err *err)
{
    const size_t rows = (size_t)d->positions;
    const size_t c = (size_t)d->width * rows;
    const size_t all = (1 + 1 + 3 + 1 + 4 + 4) * c + (1 + 1 + (size_t)d->heads + 1) * rows +
                       DECODER_LOGITS_ROWS * (size_t)d->vocab + 2 * c * (size_t)d->blocks;

    d->memory = calloc(all, sizeof(float));
    if (!d->memory)
        return err_memory(err, "no memory for the keys and values of %d positions", d->positions);
    float *at = d->memory;
    d->x = part(&at, c);
    d->norm = part(&at, c);
    d->qkv = part(&at, 3 * c);
    d->mixed = part(&at, c);
    d->wide = part(&at, 4 * c);
    d->act = part(&at, 4 * c);
    d->mean = part(&at, rows);
    d->rstd = part(&at, rows);
    d->lse = part(&at, (size_t)d->heads * rows);
    d->scores = part(&at, rows);
    d->logits = part(&at, DECODER_LOGITS_ROWS * (size_t)d->vocab);
    for (int i = 0; i < d->blocks; i++) {
        d->block[i].keys = part(&at, c);
        d->block[i].values = part(&at, c);
    }
    return 0;
}

struct decoder *decoder_make(struct model *m, struct kctx *ctx, int heads, struct err *err)
{
    cleanup_decoder struct decoder *d = calloc(1, sizeof(*d));

    if (!d) {
        err_memory(err, "no memory for a decoder");
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
