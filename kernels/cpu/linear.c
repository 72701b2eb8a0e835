/* linear.c - the three matrix products of a fully connected layer, without packing its operands. */
#include "kernels/linear.h"
#include "kernels/cpu/ops.h"
#include "kernels/cpu/product.h"

#include <string.h>

enum {
    DWEIGHT_ROWS = 12, /* rows of dweight per unit of work: one block of registers */
    MANY_ROWS = 65     /* from here on packing costs less than it saves */
};

int linear_check(const struct linear_shape *s, struct err *err)
{
    const char *op = "linear";
    if (check_range(op, "rows", s->rows, 1, INT32_MAX, err) < 0 ||
        check_range(op, "inputs", s->in, 1, INT32_MAX, err) < 0 ||
        check_range(op, "outputs", s->out, 1, INT32_MAX, err) < 0 ||
        check_elements(op, "input", (int[]){s->rows, s->in, 1, 1}, err) < 0 ||
        check_elements(op, "output", (int[]){s->rows, s->out, 1, 1}, err) < 0 ||
        check_elements(op, "weight", (int[]){s->out, s->in, 1, 1}, err) < 0)
        return -1;
    return 0;
}

struct backward {
    const struct linear_shape *s;
    const struct isa_ops *ops;
    float *din, *dweight;
    const float *dy; /* the output's gradient behind the ReLU */
    const float *in, *weight;
    float *dy_own;             /* (R,O) */
    float *tail;               /* (max(O,R)) x panel: the last columns, where a whole panel would overrun */
    int32_t *row_out, *row_in; /* (R) rows of dy and din */
    int32_t *col_out, *row_w;  /* (O) columns of dy, rows of dweight */
};

static void backward_scratch(struct backward *b, struct scratch *w, int panel)
{
    size_t rows = (size_t)b->s->rows;
    size_t outs = (size_t)b->s->out;
    b->dy_own = scratch_floats(w, rows * outs);
    b->tail = scratch_floats(w, (rows > outs ? rows : outs) * (size_t)panel);
    b->row_out = scratch_offsets(w, rows);
    b->row_in = scratch_offsets(w, rows);
    b->col_out = scratch_offsets(w, outs);
    b->row_w = scratch_offsets(w, outs);
}

size_t linear_workspace_bytes(const struct linear_shape *s)
{
    struct backward b = {.s = s};
    struct scratch w = {.counting = true};
    struct scratch many = {.counting = true};
    backward_scratch(&b, &w, ISA_PANEL_MAX);
    if (s->rows >= MANY_ROWS)
        (void)scratch_floats(&many, product_scratch(s->out, s->in, ISA_PANEL_MAX));
    return many.used_bytes > w.used_bytes ? many.used_bytes : w.used_bytes;
}

static void many_forward(struct kctx *ctx, const struct linear_shape *s, float *out, const float *in,
                         const float *weight, const float *bias, bool relu)
{
    struct scratch w = scratch_open(ctx);
    struct product p = {.a = in,
                        .a_row = s->in,
                        .a_step = 1,
                        .b = weight,
                        .b_row = s->in,
                        .c = out,
                        .c_row = s->out,
                        .bias = bias,
                        .m = s->rows,
                        .n = s->out,
                        .k = s->in,
                        .relu = relu};

    product_run(ctx, &p, scratch_floats(&w, product_scratch(s->out, s->in, kctx_ops(ctx)->panel)));
}

static void many_backward(struct kctx *ctx, const struct linear_shape *s, float *din, float *dweight,
                          float *dbias, const float *dy, const float *in, const float *weight)
{
    if (dbias)
        product_col_sum(ctx, dbias, dy, s->rows, s->out);
    product_gradients(ctx, s, din, dweight, false, dy, in, weight);
}

struct forward {
    const struct linear_shape *s;
    const struct isa_ops *ops;
    struct isa_dot dot;
};

static void forward_outs(void *arg, int begin, int end)
{
    const struct forward *f = arg;
    struct isa_dot d = f->dot;
    d.out += begin;
    d.w += (ptrdiff_t)begin * d.n;
    d.bias = d.bias ? d.bias + begin : NULL;
    d.outs = end - begin;
    f->ops->dot(&d);
}

void cpu_linear_forward(struct kctx *ctx, const struct linear_shape *s, void *out, const void *in,
                        const void *weight, const void *bias, bool relu)
{
    struct forward f = {.s = s,
                        .ops = kctx_ops(ctx),
                        .dot = {.out = out,
                                .x = in,
                                .w = weight,
                                .bias = bias,
                                .rows = s->rows,
                                .n = s->in,
                                .ld_out = s->out,
                                .relu = relu}};
    if (s->rows >= MANY_ROWS)
        many_forward(ctx, s, out, in, weight, bias, relu);
    else
        kctx_run(ctx, s->out, forward_outs, &f);
}

/* The last panel of a matrix whose columns do not fill it, copied with zeros behind. */
static void copy_tail(const struct backward *b, const float *from, int rows, int column)
{
    size_t panel = (size_t)b->ops->panel;
    size_t n = (size_t)(b->s->in - column);
    for (ptrdiff_t r = 0; r < rows; r++) {
        float *to = b->tail + (size_t)r * panel;
        memcpy(to, from + r * b->s->in + column, n * sizeof *to);
        memset(to + n, 0, (panel - n) * sizeof *to);
    }
}

/* Point g->b at panel `column` of a matrix with b->s->in columns. */
static void use_panel(const struct backward *b, struct isa_gemm *g, const float *matrix, int column)
{
    bool whole = b->s->in - column >= b->ops->panel;
    g->b = whole ? matrix + column : b->tail;
    g->ldb = whole ? b->s->in : b->ops->panel;
    g->cols = whole ? b->ops->panel : b->s->in - column;
}

static const int32_t origin = 0;

static void dweight_rows(void *arg, int begin, int end)
{
    const struct backward *b = arg;
    const struct linear_shape *s = b->s;
    struct isa_gemm g = {.a = b->dy, .a_seg = &origin, .a_step = s->out, .n_seg = 1, .seg_len = s->rows};
    for (int unit = begin; unit < end; unit++) {
        int row = unit * DWEIGHT_ROWS;
        g.a_row = b->col_out + row;
        g.c_row = b->row_w + row;
        g.rows = s->out - row < DWEIGHT_ROWS ? s->out - row : DWEIGHT_ROWS;
        for (int column = 0; column < s->in; column += b->ops->panel) {
            use_panel(b, &g, b->in, column);
            g.c = b->dweight + column;
            b->ops->gemm(&g);
        }
    }
}

static void din_panels(void *arg, int begin, int end)
{
    const struct backward *b = arg;
    const struct linear_shape *s = b->s;
    struct isa_gemm g = {.a = b->dy,
                         .a_row = b->row_out,
                         .a_seg = &origin,
                         .a_step = 1,
                         .n_seg = 1,
                         .seg_len = s->out,
                         .c_row = b->row_in,
                         .rows = s->rows};
    for (int unit = begin; unit < end; unit++) {
        int column = unit * b->ops->panel;
        use_panel(b, &g, b->weight, column);
        g.c = b->din + column;
        b->ops->gemm(&g);
    }
}

static void fill_offsets(struct backward *b)
{
    for (int r = 0; r < b->s->rows; r++) {
        b->row_out[r] = r * b->s->out;
        b->row_in[r] = r * b->s->in;
    }
    for (int o = 0; o < b->s->out; o++) {
        b->col_out[o] = o;
        b->row_w[o] = o * b->s->in;
    }
}

void cpu_linear_backward(struct kctx *ctx, const struct linear_shape *s, void *din, float *dweight,
                         float *dbias, const void *dout, const void *out, const void *in, const void *weight)
{
    struct backward b = {
        .s = s, .ops = kctx_ops(ctx), .din = din, .dweight = dweight, .dy = dout, .in = in, .weight = weight};
    struct scratch w = scratch_open(ctx);
    backward_scratch(&b, &w, b.ops->panel);
    fill_offsets(&b);
    if (out) {
        b.ops->relu_mask(b.dy_own, dout, out, (size_t)s->rows * (size_t)s->out);
        b.dy = b.dy_own;
    }
    if (s->rows >= MANY_ROWS) {
        many_backward(ctx, s, din, dweight, dbias, b.dy, in, weight);
        return;
    }
    if (dbias) {
        memset(dbias, 0, (size_t)s->out * sizeof *dbias);
        b.ops->col_sum(dbias, b.dy, s->out, s->rows, s->out);
    }
    int tail = s->in / b.ops->panel * b.ops->panel;
    if (tail < s->in)
        copy_tail(&b, in, s->rows, tail);
    kctx_run(ctx, (s->out + DWEIGHT_ROWS - 1) / DWEIGHT_ROWS, dweight_rows, &b);
    if (!din)
        return;
    if (tail < s->in)
        copy_tail(&b, weight, s->out, tail);
    kctx_run(ctx, panel_round(s->in, b.ops->panel) / b.ops->panel, din_panels, &b);
}

void cpu_linear_gelu_forward(struct kctx *ctx, const struct linear_shape *s, void *out, void *before,
                             const void *in, const void *weight, const void *bias)
{
    cpu_linear_forward(ctx, s, before, in, weight, bias, false);
    cpu_gelu_forward(ctx, GELU_TANH, out, before, (size_t)s->rows * (size_t)s->out);
}

void cpu_gelu_linear_backward(struct kctx *ctx, const struct linear_shape *s, void *din, void *room,
                              float *dweight, float *dbias, const void *dout, const void *in,
                              const void *before, const void *weight)
{
    cpu_linear_backward(ctx, s, room, dweight, dbias, dout, NULL, in, weight);
    cpu_gelu_backward(ctx, GELU_TANH, din, room, before, (size_t)s->rows * (size_t)s->in);
}
