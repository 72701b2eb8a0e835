/* product.c - matrix product of any size: each thread computes blocks of C along all of K. */
#include "kernels/cpu/product.h"

#include <string.h>

enum {
    BLOCK_ROWS = 240, /* of C in a unit of work: whole blocks of registers for every set */
    BLOCK_STEPS = 256 /* of K at a time: that many rows of a panel of B fit the first-level cache */
};

size_t product_scratch(int n, int k, int panel)
{
    return (size_t)panel_round(n, panel) * (size_t)k;
}

struct job {
    const struct product *p;
    const struct isa_ops *ops;
    float *packed; /* NULL: B lies so that each unit packs what it needs */
    int panels;
};

/* Panel after panel of B: K rows each, as wide as a panel, zeros behind column N. */
static void pack_across(void *arg, int begin, int end)
{
    const struct job *j = arg;
    const struct product *p = j->p;
    const int w = j->ops->panel;

    for (int panel = begin; panel < end; panel++) {
        int n = p->n - panel * w < w ? p->n - panel * w : w;
        j->ops->pack_across(j->packed + (size_t)panel * (size_t)w * (size_t)p->k,
                            p->b + (ptrdiff_t)panel * w * p->b_row, p->b_row, n, p->k);
    }
}

void product_pack(float *to, const float *from, ptrdiff_t row, int n, int steps, int w)
{
    for (int k = 0; k < steps; k++, from += row, to += w) {
        memcpy(to, from, (size_t)n * sizeof(*to));
        if (n < w)
            memset(to + n, 0, (size_t)(w - n) * sizeof(*to));
    }
}

static const int32_t origin = 0;

static void one_block(const struct job *j, int first, int panel)
{
    const struct product *p = j->p;
    const int w = j->ops->panel;
    const ptrdiff_t column = (ptrdiff_t)panel * w;
    const int rows = p->m - first < BLOCK_ROWS ? p->m - first : BLOCK_ROWS;
    int32_t a_row[BLOCK_ROWS], c_row[BLOCK_ROWS];
    float own[BLOCK_STEPS * ISA_PANEL_MAX]
        __attribute__((uninitialized)); /* a panel of B; clearing it takes time */
    float bias[ISA_PANEL_MAX];
    struct isa_gemm g = {.a_row = a_row,
                         .a_seg = &origin,
                         .a_step = p->a_step,
                         .n_seg = 1,
                         .ldb = w,
                         .c = p->c + first * p->c_row + column,
                         .c_row = c_row,
                         .rows = rows,
                         .cols = p->n - column < w ? (int)(p->n - column) : w};

    for (int r = 0; r < rows; r++) {
        a_row[r] = (int32_t)(r * p->a_row);
        c_row[r] = (int32_t)(r * p->c_row);
    }
    if (p->bias && !p->accumulate) {
        memset(bias, 0, sizeof(bias));
        memcpy(bias, p->bias + column, (size_t)g.cols * sizeof(*bias));
    }
    for (int k = 0; k < p->k; k += BLOCK_STEPS) {
        g.seg_len = p->k - k < BLOCK_STEPS ? p->k - k : BLOCK_STEPS;
        g.a = p->a + first * p->a_row + k * p->a_step;
        g.add = p->accumulate || k > 0;
        g.bias = p->bias && !g.add ? bias : NULL;
        g.relu = p->relu && k + g.seg_len == p->k;
        if (j->packed) {
            g.b = j->packed + (column * p->k + (ptrdiff_t)k * w);
        } else {
            product_pack(own, p->b + k * p->b_row + column, p->b_row, g.cols, g.seg_len, w);
            g.b = own;
        }
        j->ops->gemm(&g);
    }
}

static void blocks(void *arg, int begin, int end)
{
    const struct job *j = arg;

    for (int unit = begin; unit < end; unit++)
        one_block(j, unit / j->panels * BLOCK_ROWS, unit % j->panels);
}

void product_run(struct kctx *ctx, const struct product *p, float *packed)
{
    const struct isa_ops *ops = kctx_ops(ctx);
    struct job j = {
        .p = p, .ops = ops, .packed = packed, .panels = panel_round(p->n, ops->panel) / ops->panel};

    if (packed)
        kctx_run(ctx, j.panels, pack_across, &j);
    kctx_run(ctx, (p->m + BLOCK_ROWS - 1) / BLOCK_ROWS * j.panels, blocks, &j);
}

enum { SUM_COLUMNS = 64 };

struct sums {
    const struct isa_ops *ops;
    float *sum;
    const float *x;
    int rows, cols;
};

static void sum_columns(void *arg, int begin, int end)
{
    const struct sums *s = arg;
    int first = begin * SUM_COLUMNS;
    int n = (end * SUM_COLUMNS < s->cols ? end * SUM_COLUMNS : s->cols) - first;

    memset(s->sum + first, 0, (size_t)n * sizeof(*s->sum));
    s->ops->col_sum(s->sum + first, s->x + first, s->cols, s->rows, n);
}

void product_col_sum(struct kctx *ctx, float *sum, const float *x, int rows, int cols)
{
    struct sums s = {kctx_ops(ctx), sum, x, rows, cols};

    kctx_run(ctx, (cols + SUM_COLUMNS - 1) / SUM_COLUMNS, sum_columns, &s);
}

void product_gradients(struct kctx *ctx, const struct linear_shape *s, float *din, float *dweight, bool more,
                       const float *dy, const float *in, const float *weight)
{
    const struct product dw = {.a = dy,
                               .a_row = 1,
                               .a_step = s->out,
                               .b = in,
                               .b_row = s->in,
                               .c = dweight,
                               .c_row = s->in,
                               .m = s->out,
                               .n = s->in,
                               .k = s->rows,
                               .accumulate = more};
    const struct product di = {.a = dy,
                               .a_row = s->out,
                               .a_step = 1,
                               .b = weight,
                               .b_row = s->in,
                               .c = din,
                               .c_row = s->in,
                               .m = s->rows,
                               .n = s->in,
                               .k = s->out};

    product_run(ctx, &dw, NULL);
    if (din)
        product_run(ctx, &di, NULL);
}
