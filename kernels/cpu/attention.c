/* attention.c - forward pass of causal attention: blocks of keys, with each row's softmax computed online. */
#include "kernels/cpu/attention.h"
#include "kernels/cpu/ops.h"

#include <math.h>

int attention_check(const struct attention_shape *s, struct err *err)
{
    const char *op = "attention";
    if (check_range(op, "batch", s->batch, 1, INT32_MAX, err) < 0 ||
        check_range(op, "time", s->time, 1, INT32_MAX, err) < 0 ||
        check_range(op, "heads", s->heads, 1, INT32_MAX, err) < 0 ||
        check_range(op, "size of a head", s->size, 1, ATTENTION_SIZE_MAX, err) < 0 ||
        check_elements(op, "input", (int[]){s->batch, s->time, s->heads, 3 * s->size}, err) < 0)
        return -1;
    return 0;
}

static struct attention_lane take_lane(struct scratch *w, const struct attention_shape *s, int panel)
{
    size_t across = (size_t)s->size * KEYS;
    size_t width = (size_t)panel_round(s->size, panel);
    size_t time = (size_t)s->time;
    struct attention_lane l;

    l.keys_across = scratch_floats(w, across);
    l.values_across = scratch_floats(w, across);
    l.keys = scratch_floats(w, width * KEYS);
    l.values = scratch_floats(w, width * KEYS);
    l.queries = scratch_floats(w, width * QUERIES);
    l.dout = scratch_floats(w, width * QUERIES);
    l.weight = scratch_floats(w, (size_t)QUERIES * WEIGHTS);
    l.dweight = scratch_floats(w, (size_t)QUERIES * WEIGHTS);
    l.most = scratch_floats(w, time);
    l.sum = scratch_floats(w, time);
    return l;
}

size_t attention_thread_bytes(const struct attention_shape *s)
{
    struct scratch w = {.counting = true};

    (void)take_lane(&w, s, ISA_PANEL_MAX);
    return w.used_bytes;
}

static struct attention_lane lane_of(const struct attention_job *j, int lane)
{
    size_t bytes = attention_thread_bytes(j->s);
    struct scratch w = {.base = j->lanes + (size_t)lane * bytes, .cap_bytes = bytes};

    return take_lane(&w, j->s, j->ops->panel);
}

static struct attention_head head_of(const struct attention_job *j, int number)
{
    const struct attention_shape *s = j->s;
    ptrdiff_t width = (ptrdiff_t)s->heads * s->size;
    ptrdiff_t b = number / s->heads;
    ptrdiff_t h = number % s->heads;
    ptrdiff_t at = b * s->time * j->row + h * s->size;
    struct attention_head ret = {.q = j->qkv + at,
                                 .k = j->qkv + at + width,
                                 .v = j->qkv + at + 2 * width,
                                 .at = b * s->time * j->out_row + h * s->size,
                                 .lse = (ptrdiff_t)number * s->time};

    if (j->dqkv) {
        ret.dq = j->dqkv + at;
        ret.dk = ret.dq + width;
        ret.dv = ret.dk + width;
    }
    return ret;
}

static void run_lanes(void *arg, int first, int last)
{
    const struct attention_job *j = arg;
    const int64_t heads = (int64_t)j->s->batch * j->s->heads;

    for (int i = first; i < last; i++) {
        const struct attention_lane lane = lane_of(j, i);
        const int end = (int)(heads * (i + 1) / j->n_lanes);
        for (int number = (int)(heads * i / j->n_lanes); number < end; number++) {
            const struct attention_head h = head_of(j, number);
            j->each(j, &h, &lane);
        }
    }
}

void attention_run(struct kctx *ctx, struct attention_job *j, attention_each *each)
{
    const struct attention_shape *s = j->s;
    struct scratch w = scratch_open(ctx);

    j->ops = kctx_ops(ctx);
    j->each = each;
    j->n_lanes = kctx_threads(ctx);
    j->lanes = scratch_take(&w, (size_t)j->n_lanes, attention_thread_bytes(s));
    j->scale = 1.0F / sqrtf((float)s->size);
    j->out_row = (ptrdiff_t)s->heads * s->size;
    j->row = 3 * j->out_row;
    kctx_run(ctx, j->n_lanes, run_lanes, j);
}

static const int32_t origin = 0;

static void fill_rows(int32_t *row, int rows, ptrdiff_t step)
{
    for (int r = 0; r < rows; r++)
        row[r] = (int32_t)(r * step);
}

void attention_scores(const struct attention_job *j, const struct attention_block *b, float *c,
                      const float *a, ptrdiff_t a_row, const float *across)
{
    const int w = j->ops->panel;
    int32_t rows_a[QUERIES], rows_c[QUERIES];
    struct isa_gemm g = {.a = a,
                         .a_row = rows_a,
                         .a_seg = &origin,
                         .a_step = 1,
                         .n_seg = 1,
                         .seg_len = j->s->size,
                         .ldb = w,
                         .c_row = rows_c,
                         .rows = b->queries,
                         .cols = w};

    fill_rows(rows_a, b->queries, a_row);
    fill_rows(rows_c, b->queries, WEIGHTS);
    for (int k = 0; k < b->keys; k += w) {
        g.b = across + (ptrdiff_t)k * j->s->size;
        g.c = c + k;
        j->ops->gemm(&g);
    }
}

void attention_multiply(const struct attention_job *j, const struct attention_product *p)
{
    const int w = j->ops->panel;
    int32_t rows_a[KEYS], rows_c[KEYS];
    struct isa_gemm g = {.a = p->a,
                         .a_row = rows_a,
                         .a_seg = &origin,
                         .a_step = p->a_step,
                         .n_seg = 1,
                         .seg_len = p->steps,
                         .ldb = w,
                         .c_row = rows_c,
                         .rows = p->rows,
                         .add = p->accumulate};

    fill_rows(rows_a, p->rows, p->a_row);
    fill_rows(rows_c, p->rows, p->c_row);
    for (int c = 0; c < j->s->size; c += w) {
        g.b = p->b + (ptrdiff_t)c * p->height;
        g.c = p->c + c;
        g.cols = j->s->size - c < w ? j->s->size - c : w;
        j->ops->gemm(&g);
    }
}

void attention_pack(const struct attention_job *j, float *to, const float *from, ptrdiff_t row, int rows,
                    int height)
{
    const int w = j->ops->panel;

    for (int c = 0; c < j->s->size; c += w)
        product_pack(to + (ptrdiff_t)c * height, from + c, row, j->s->size - c < w ? j->s->size - c : w, rows,
                     w);
}

/* Queries of a block against its keys: the output so far is scaled to the new largest product, and goes on. */
static void forward_block(const struct attention_job *j, const struct attention_head *h,
                          const struct attention_lane *l, const struct attention_block *b)
{
    float *out = j->out + h->at + b->q0 * j->out_row;

    attention_scores(j, b, l->weight, h->q + b->q0 * j->row, j->row, l->keys_across);
    for (int q = 0; q < b->queries; q++) {
        float *most = &l->most[b->q0 + q];
        float *sum = &l->sum[b->q0 + q];
        float before = j->ops->softmax_more(l->weight + (ptrdiff_t)q * WEIGHTS, attention_seen(b, q), b->keys,
                                            j->scale, most, sum);
        if (b->k0)
            j->ops->scale_row(out + q * j->out_row, before, (size_t)j->s->size);
    }
    struct attention_product p = {.a = l->weight,
                                  .a_row = WEIGHTS,
                                  .a_step = 1,
                                  .b = l->values,
                                  .height = KEYS,
                                  .c = out,
                                  .c_row = j->out_row,
                                  .rows = b->queries,
                                  .steps = b->keys,
                                  .accumulate = b->k0 > 0};
    attention_multiply(j, &p);
}

static void forward_head(const struct attention_job *j, const struct attention_head *h,
                         const struct attention_lane *l)
{
    const int time = j->s->time;

    for (int t = 0; t < time; t++) {
        l->most[t] = -INFINITY;
        l->sum[t] = 0;
    }
    for (int k0 = 0; k0 < time; k0 += KEYS) {
        int keys = time - k0 < KEYS ? time - k0 : KEYS;
        for (int k = 0; k < keys; k += j->ops->panel)
            j->ops->pack_across(l->keys_across + (ptrdiff_t)k * j->s->size, h->k + (k0 + k) * j->row, j->row,
                                keys - k < j->ops->panel ? keys - k : j->ops->panel, j->s->size);
        attention_pack(j, l->values, h->v + k0 * j->row, j->row, keys, KEYS);
        for (int q0 = k0; q0 < time; q0 += QUERIES) {
            const struct attention_block b = attention_block_of(q0, k0, keys, time);
            forward_block(j, h, l, &b);
        }
    }
    for (int t = 0; t < time; t++) {
        float *out = j->out + h->at + t * j->out_row;
        j->ops->scale_row(out, 1.0F / l->sum[t], (size_t)j->s->size);
        j->lse[h->lse + t] = l->most[t] + logf(l->sum[t]);
    }
}

void cpu_attention_forward(struct kctx *ctx, const struct attention_shape *s, void *out, float *lse,
                           const void *qkv)
{
    struct attention_job j = {.s = s, .out = out, .lse = lse, .qkv = qkv};

    attention_run(ctx, &j, forward_head);
}
