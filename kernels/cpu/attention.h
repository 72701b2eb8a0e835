/* attention.h - what attention's forward and backward passes share: one head of one sequence, cut into blocks. */
#ifndef TK_KERNELS_CPU_ATTENTION_H
#define TK_KERNELS_CPU_ATTENTION_H

#include "kernels/attention.h"
#include "kernels/cpu/product.h"

enum {
    KEYS = 256,   /* of a block */
    QUERIES = 96, /* of a block: whole blocks of registers for every set */
    WEIGHTS =
        KEYS + 16 /* floats from one row of weights to the next: not a power of two, which caches dislike */
};

/* A thread's own memory. */
struct attention_lane {
    float *keys_across, *values_across; /* (S, KEYS) in panels */
    float *keys, *values;               /* (KEYS, S) in panels */
    float *queries, *dout;              /* (QUERIES, S) in panels */
    float *weight, *dweight;            /* (QUERIES, WEIGHTS) */
    float *most, *sum;                  /* (T); backward: dot in `sum` */
};

struct attention_job;
struct attention_head;
typedef void attention_each(const struct attention_job *j, const struct attention_head *h,
                            const struct attention_lane *l);

struct attention_job {
    const struct attention_shape *s;
    const struct isa_ops *ops;
    attention_each *each; /* a pass over one head */
    char *lanes;
    int n_lanes;
    float scale;
    ptrdiff_t row, out_row; /* floats from one position to the next in qkv and in out */
    float *out, *lse, *dqkv;
    const float *qkv, *dout;
    const float *out_in, *lse_in; /* backward */
};

/* One head of one sequence. */
struct attention_head {
    const float *q, *k, *v;
    float *dq, *dk, *dv;
    ptrdiff_t at;  /* of its first number in out */
    ptrdiff_t lse; /* of its first row in lse */
};

/* Queries and keys that meet: first of each, and how many. */
struct attention_block {
    int q0, queries, k0, keys;
};

/* Every head, shared by as many lanes as there are threads. */
void attention_run(struct kctx *ctx, struct attention_job *j, attention_each *each);

/* c (queries, WEIGHTS) = rows of a times the panels of `across`: the products with every key of the block. */
void attention_scores(const struct attention_job *j, const struct attention_block *b, float *c,
                      const float *a, ptrdiff_t a_row, const float *across);

/* One product in panels as wide as a head: c (rows, S) += a b. */
struct attention_product {
    const float *a;
    ptrdiff_t a_row, a_step;
    const float *b; /* (steps, S) in panels of `height` rows */
    int height;
    float *c;
    ptrdiff_t c_row;
    int rows, steps;
    bool accumulate;
};
void attention_multiply(const struct attention_job *j, const struct attention_product *p);

/* (rows, S) at `row` floats apart into panels of `height` rows. */
void attention_pack(const struct attention_job *j, float *to, const float *from, ptrdiff_t row, int rows,
                    int height);

/* The block of queries from q0 on: keys from k0 on that its last query may see, of `keys` at the most. */
static inline struct attention_block attention_block_of(int q0, int k0, int keys, int time)
{
    struct attention_block b = {q0, time - q0 < QUERIES ? time - q0 : QUERIES, k0, keys};

    if (b.q0 + b.queries - k0 < keys)
        b.keys = b.q0 + b.queries - k0;
    return b;
}

/* The keys up to which a query may look, of a block's. */
static inline int attention_seen(const struct attention_block *b, int query)
{
    int seen = b->q0 + query - b->k0 + 1;
    return seen < b->keys ? seen : b->keys;
}

#endif
