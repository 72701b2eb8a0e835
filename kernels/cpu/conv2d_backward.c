/* conv2d_backward.c - gradients of a convolution: of the weights by products over all pixels, of the input by
 * adding each kernel tap's product at its place, so that no tap multiplies padding. */
#include "kernels/cpu/conv2d.h"

#include "kernels/cpu/ops.h"

#include <string.h>

enum { WEIGHT_STEPS = 160 }; /* pixels per block: its rows of `in` and `dout` stay in the first-level cache */

struct backward {
    const struct conv2d_shape *s;
    struct conv2d_dims d;
    const struct isa_ops *ops;
    const float *in;
    const float *dy; /* the output's gradient behind the ReLU */
    ptrdiff_t ld_dy;
    float *din, *dbias;
    float *dy_own;            /* (batch, pixels, out_c) in whole panels, when dout cannot be read as it is */
    int32_t *pixel_at;        /* (pixels) of a pixel in dy */
    int32_t *window_at;       /* (pixels) of a pixel's window in the input */
    int32_t *k_at, *k_row_at; /* (k) of a window's element in the input, and in dweight */
    int32_t *line_at;         /* (batch, out_h) of an output line's first window in the input */
    float *dweight;           /* (k_h, k_w, in_c) x out_c in whole panels */
    float *framed, *dframed;  /* the input and its gradient with padding, when there is any */
    float *weight;            /* (k_h, k_w) x panels of out_c x panel */
};

static void backward_scratch(struct backward *b, struct scratch *w, int panel, bool pad)
{
    size_t framed = pad ? (size_t)b->s->batch * (size_t)b->d.in_image : 0;
    size_t out_c = (size_t)panel_round(b->s->out_c, panel);
    size_t in_c = (size_t)panel_round(b->s->in_c, panel);
    size_t batch = (size_t)b->s->batch;
    b->pixel_at = scratch_offsets(w, (size_t)b->d.pixels);
    b->window_at = scratch_offsets(w, (size_t)b->d.pixels);
    b->k_at = scratch_offsets(w, (size_t)b->d.k);
    b->k_row_at = scratch_offsets(w, (size_t)b->d.k);
    b->line_at = scratch_offsets(w, batch * (size_t)b->d.out_h);
    b->dweight = scratch_floats(w, (size_t)b->d.k * out_c);
    b->weight = scratch_floats(w, (size_t)(b->s->k_h * b->s->k_w) * in_c * (size_t)b->s->out_c);
    b->dy_own = scratch_floats(w, batch * (size_t)b->d.pixels * out_c);
    b->framed = scratch_floats(w, framed);
    b->dframed = scratch_floats(w, framed);
}

static size_t backward_bytes(const struct conv2d_shape *s)
{
    struct conv2d_shape framed = conv2d_framed(s);
    struct backward b = {.s = &framed, .d = conv2d_dims(&framed)};
    struct scratch w = {.counting = true};
    backward_scratch(&b, &w, ISA_PANEL_MAX, s->pad);
    return w.used_bytes;
}

size_t conv2d_workspace_bytes(const struct conv2d_shape *s)
{
    size_t forward = conv2d_forward_bytes(s);
    size_t backward = backward_bytes(s);
    return forward > backward ? forward : backward;
}

static void fill_offsets(struct backward *b)
{
    const struct conv2d_shape *s = b->s;
    conv2d_row_offsets(b->d.pixels, b->ld_dy, b->pixel_at);
    conv2d_window_offsets(s, b->window_at);
    for (int t = 0; t < s->k_h * s->k_w; t++) {
        for (int c = 0; c < s->in_c; c++)
            b->k_at[t * s->in_c + c] = conv2d_tap_offset(s, t) + c;
    }
    conv2d_row_offsets(b->d.k, panel_round(s->out_c, b->ops->panel), b->k_row_at);
    for (int i = 0; i < s->batch; i++)
        for (int y = 0; y < b->d.out_h; y++)
            b->line_at[i * b->d.out_h + y] = (int32_t)(i * b->d.in_image + y * s->stride * b->d.in_row);
}

struct copy_job {
    struct backward *b;
    const float *dout, *out;
};

static void copy_images(void *arg, int begin, int end)
{
    const struct copy_job *j = arg;
    struct backward *b = j->b;
    const int n = b->s->out_c;
    for (ptrdiff_t p = (ptrdiff_t)begin * b->d.pixels; p < (ptrdiff_t)end * b->d.pixels; p++) {
        float *to = b->dy_own + p * b->ld_dy;
        if (j->out)
            b->ops->relu_mask(to, j->dout + p * n, j->out + p * n, (size_t)n);
        else
            memcpy(to, j->dout + p * n, (size_t)n * sizeof *to);
        memset(to + n, 0, (size_t)(b->ld_dy - n) * sizeof *to);
    }
}

/* Find dy: dout itself when it needs neither the ReLU's mask nor padding to whole panels. */
static void prepare_dy(struct kctx *ctx, struct backward *b, const float *dout, const float *out)
{
    b->ld_dy = panel_round(b->s->out_c, b->ops->panel);
    b->dy = dout;
    if (!out && b->ld_dy == b->s->out_c)
        return;
    struct copy_job job = {b, dout, out};
    kctx_run(ctx, b->s->batch, copy_images, &job);
    b->dy = b->dy_own;
}

/* Rows begin..end-1 of dweight, over all pixels in blocks of whole output lines. */
static void weight_rows(void *arg, int begin, int end)
{
    const struct backward *b = arg;
    const struct conv2d_shape *s = b->s;
    int panel = b->ops->panel;
    int lines = s->batch * b->d.out_h;
    int block = b->d.out_w < WEIGHT_STEPS ? WEIGHT_STEPS / b->d.out_w : 1;
    struct isa_gemm g = {.a = b->in,
                         .a_row = b->k_at + begin,
                         .a_step = (ptrdiff_t)s->stride * s->in_c,
                         .seg_len = b->d.out_w,
                         .ldb = b->ld_dy,
                         .c_row = b->k_row_at + begin,
                         .rows = end - begin,
                         .cols = panel};
    for (int line = 0; line < lines; line += block) {
        const float *dy = b->dy + (ptrdiff_t)line * b->d.out_w * b->ld_dy;
        g.a_seg = b->line_at + line;
        g.n_seg = lines - line < block ? lines - line : block;
        g.accumulate = line > 0;
        for (int channel = 0; channel < s->out_c; channel += panel) {
            g.b = dy + channel;
            g.c = b->dweight + channel;
            b->ops->gemm(&g);
        }
        if (begin == 0 && b->dbias)
            b->ops->col_sum(b->dbias, dy, b->ld_dy, g.n_seg * b->d.out_w, s->out_c);
    }
}

static void unpack_weight(const struct backward *b, float *dweight)
{
    const struct conv2d_shape *s = b->s;
    const ptrdiff_t ld = panel_round(s->out_c, b->ops->panel);
    for (int o = 0; o < s->out_c; o++) {
        for (int c = 0; c < s->in_c; c++) {
            for (int t = 0; t < s->k_h * s->k_w; t++)
                *dweight++ = b->dweight[((ptrdiff_t)t * s->in_c + c) * ld + o];
        }
    }
}

static void pack_weight(const struct backward *b, const float *weight)
{
    const struct conv2d_shape *s = b->s;
    const int panel = b->ops->panel;
    const int taps = s->k_h * s->k_w;
    const ptrdiff_t tap_floats = (ptrdiff_t)panel_round(s->in_c, panel) * s->out_c;
    for (int o = 0; o < s->out_c; o++) {
        for (int c = 0; c < panel_round(s->in_c, panel); c++) {
            float *to =
                b->weight + (ptrdiff_t)(c / panel) * panel * s->out_c + (ptrdiff_t)o * panel + c % panel;
            for (int t = 0; t < taps; t++)
                to[t * tap_floats] = c < s->in_c ? *weight++ : 0;
        }
    }
}

/* One tap and one panel of input channels, added to images begin..end-1. */
static void input_block(const struct backward *b, int tap, int channel, int begin, int end)
{
    static const int32_t origin = 0;
    const struct conv2d_shape *s = b->s;
    int panel = b->ops->panel;
    ptrdiff_t place = conv2d_tap_offset(s, tap) + channel;
    struct isa_gemm g = {
        .a_row = b->pixel_at,
        .a_seg = &origin,
        .a_step = 1,
        .n_seg = 1,
        .seg_len = s->out_c,
        .b = b->weight + ((ptrdiff_t)tap * panel_round(s->in_c, panel) + channel) * s->out_c,
        .ldb = panel,
        .c_row = b->window_at,
        .rows = b->d.pixels,
        .cols = s->in_c - channel < panel ? s->in_c - channel : panel,
        .accumulate = true,
    };
    for (int i = begin; i < end; i++) {
        g.a = b->dy + (ptrdiff_t)i * b->d.pixels * b->ld_dy;
        g.c = b->din + i * b->d.in_image + place;
        b->ops->gemm(&g);
    }
}

static void input_images(void *arg, int begin, int end)
{
    const struct backward *b = arg;
    for (int i = begin; i < end; i += b->d.group) {
        int stop = i + b->d.group < end ? i + b->d.group : end;
        memset(b->din + i * b->d.in_image, 0, (size_t)(stop - i) * (size_t)b->d.in_image * sizeof(float));
        for (int channel = 0; channel < b->s->in_c; channel += b->ops->panel) {
            for (int tap = 0; tap < b->s->k_h * b->s->k_w; tap++)
                input_block(b, tap, channel, i, stop);
        }
    }
}

void cpu_conv2d_backward(struct kctx *ctx, const struct conv2d_shape *s, float *din, float *dweight,
                         float *dbias, const float *dout, const float *out, const float *in,
                         const float *weight)
{
    struct conv2d_shape framed = conv2d_framed(s);
    struct backward b = {
        .s = &framed, .d = conv2d_dims(&framed), .ops = kctx_ops(ctx), .in = in, .din = din, .dbias = dbias};
    struct scratch w = scratch_open(ctx);
    backward_scratch(&b, &w, b.ops->panel, s->pad);
    if (s->pad) {
        conv2d_frame(ctx, s, b.framed, in);
        b.in = b.framed;
        b.din = b.dframed;
    }
    prepare_dy(ctx, &b, dout, out);
    fill_offsets(&b);
    if (dbias)
        memset(dbias, 0, (size_t)s->out_c * sizeof *dbias);
    kctx_run(ctx, b.d.k, weight_rows, &b);
    unpack_weight(&b, dweight);
    if (!din)
        return;
    pack_weight(&b, weight);
    kctx_run(ctx, s->batch, input_images, &b);
    if (s->pad)
        conv2d_unframe(ctx, s, din, b.dframed);
}
