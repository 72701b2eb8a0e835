/* attention_backward.c - the gradients: weights are made again, block by block, and every sum runs over blocks of
 * queries or of keys first to last. */
#include "kernels/cpu/attention.h"
#include "kernels/cpu/ops.h"

/* With w the weights of a row and dw their gradients, those of the products are w (dw - sum(w dw)); that sum is the
 * product of the row's output with its gradient. */
static void dot_rows(const struct attention_job *j, const struct attention_head *h, float *dot)
{
    for (int t = 0; t < j->s->time; t++) {
        ptrdiff_t at = h->at + t * j->out_row;
        dot[t] = j->ops->inner(j->out_in + at, j->dout + at, j->s->size);
    }
}

static void backward_block(const struct attention_job *j, const struct attention_head *h,
                           const struct attention_lane *l, const struct attention_block *b)
{
    const float *q = h->q + b->q0 * j->row;
    const float *dout = j->dout + h->at + b->q0 * j->out_row;

    attention_pack(j, l->queries, q, j->row, b->queries, QUERIES);
    attention_pack(j, l->dout, dout, j->out_row, b->queries, QUERIES);
    attention_scores(j, b, l->weight, q, j->row, l->keys_across);
    attention_scores(j, b, l->dweight, dout, j->out_row, l->values_across);
    for (int i = 0; i < b->queries; i++)
        j->ops->softmax_again(l->weight + (ptrdiff_t)i * WEIGHTS, l->dweight + (ptrdiff_t)i * WEIGHTS,
                              attention_seen(b, i), b->keys, j->scale, j->lse_in[h->lse + b->q0 + i],
                              l->sum[b->q0 + i]);
    struct attention_product dv = {.a = l->weight,
                                   .a_row = 1,
                                   .a_step = WEIGHTS,
                                   .b = l->dout,
                                   .height = QUERIES,
                                   .c = h->dv + b->k0 * j->row,
                                   .c_row = j->row,
                                   .rows = b->keys,
                                   .steps = b->queries,
                                   .accumulate = true};
    struct attention_product dk = dv;
    dk.a = l->dweight;
    dk.b = l->queries;
    dk.c = h->dk + b->k0 * j->row;
    struct attention_product dq = {.a = l->dweight,
                                   .a_row = WEIGHTS,
                                   .a_step = 1,
                                   .b = l->keys,
                                   .height = KEYS,
                                   .c = h->dq + b->q0 * j->row,
                                   .c_row = j->row,
                                   .rows = b->queries,
                                   .steps = b->keys,
                                   .accumulate = b->k0 > 0};
    attention_multiply(j, &dv);
    attention_multiply(j, &dk);
    attention_multiply(j, &dq);
}

/* Keys of a block that its first queries do not see get nothing from them: zeros to add to. */
static void clear_unseen(const struct attention_job *j, const struct attention_head *h, int k0, int keys)
{
    for (int k = 0; k < keys; k++)
        for (int c = 0; c < j->s->size; c++) {
            h->dk[(k0 + k) * j->row + c] = 0;
            h->dv[(k0 + k) * j->row + c] = 0;
        }
}

static void backward_head(const struct attention_job *j, const struct attention_head *h,
                          const struct attention_lane *l)
{
    const int time = j->s->time;
    const int w = j->ops->panel;

    dot_rows(j, h, l->sum);
    for (int k0 = 0; k0 < time; k0 += KEYS) {
        int keys = time - k0 < KEYS ? time - k0 : KEYS;
        for (int k = 0; k < keys; k += w) {
            int n = keys - k < w ? keys - k : w;
            j->ops->pack_across(l->keys_across + (ptrdiff_t)k * j->s->size, h->k + (k0 + k) * j->row, j->row,
                                n, j->s->size);
            j->ops->pack_across(l->values_across + (ptrdiff_t)k * j->s->size, h->v + (k0 + k) * j->row,
                                j->row, n, j->s->size);
        }
        attention_pack(j, l->keys, h->k + k0 * j->row, j->row, keys, KEYS);
        clear_unseen(j, h, k0, keys);
        for (int q0 = k0; q0 < time; q0 += QUERIES) {
            const struct attention_block b = attention_block_of(q0, k0, keys, time);
            backward_block(j, h, l, &b);
        }
    }
}

void cpu_attention_backward(struct kctx *ctx, const struct attention_shape *s, void *dqkv, const void *dout,
                            const void *out, const float *lse, const void *qkv)
{
    struct attention_job j = {.s = s, .dqkv = dqkv, .dout = dout, .out_in = out, .lse_in = lse, .qkv = qkv};

    attention_run(ctx, &j, backward_head);
}
