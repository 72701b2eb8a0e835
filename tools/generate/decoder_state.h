/* decoder_state.h - the decoder's struct, for decoder.c and decoder_open.c alone. */
#ifndef TK_TOOLS_GENERATE_DECODER_STATE_H
#define TK_TOOLS_GENERATE_DECODER_STATE_H

#include "kernels/attention.h"
#include "kernels/layernorm.h"
#include "kernels/linear.h"
#include "tools/generate/decoder.h"

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
    int vocab, positions, width, heads, blocks;
    int len;   /* positions that are kept */
    int taken; /* of them, those of the last call */
    const float *wte, *wpe;
    struct pair ln_f;
    struct block *block;
    float *memory; /* of all below, and of keys and values */
    /* of as many rows as there are positions */
    float *x, *norm, *qkv, *mixed, *wide, *act, *mean, *rstd, *lse;
    float *scores; /* (positions) */
    float *logits; /* (DECODER_LOGITS_ROWS, vocab) */
};

static inline struct linear_shape decoder_linear(int rows, int in, int out)
{
    return (struct linear_shape){.rows = rows, .in = in, .out = out};
}

static inline struct layernorm_shape decoder_norm(const struct decoder *d, int rows)
{
    return (struct layernorm_shape){.rows = rows, .channels = d->width, .eps = 1e-5};
}

static inline struct attention_shape decoder_attention(const struct decoder *d, int rows)
{
    return (struct attention_shape){.batch = 1, .time = rows, .heads = d->heads, .size = d->width / d->heads};
}

#endif
