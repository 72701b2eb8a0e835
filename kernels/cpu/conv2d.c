/* conv2d.c - convolution: check arguments, compute sizes, forward pass. */
#include "kernels/cpu/conv2d.h"

#include "kernels/cpu/ops.h"

enum { PAD_MAX = 4096 };

/* How far a kernel of k elements reaches. */
static int64_t reach(int k, int dilation)
{
    return (int64_t)(k - 1) * dilation + 1;
}

static int out_size(int in, int k, const struct conv2d_shape *s)
{
    return (int)((in + 2 * s->pad - reach(k, s->dilation)) / s->stride + 1);
}

static int check_fields(const struct conv2d_shape *s, struct err *err)
{
    const char *op = "conv2d";
    if (check_range(op, "batch", s->batch, 1, INT32_MAX, err) < 0 ||
        check_range(op, "input height", s->in_h, 1, INT32_MAX - 2 * PAD_MAX, err) < 0 ||
        check_range(op, "input width", s->in_w, 1, INT32_MAX - 2 * PAD_MAX, err) < 0 ||
        check_range(op, "input channels", s->in_c, 1, INT32_MAX - ISA_PANEL_MAX, err) < 0 ||
        check_range(op, "output channels", s->out_c, 1, INT32_MAX - ISA_PANEL_MAX, err) < 0 ||
        check_range(op, "padding", s->pad, 0, PAD_MAX, err) < 0 ||
        check_range(op, "stride", s->stride, 1, INT32_MAX, err) < 0 ||
        check_range(op, "dilation", s->dilation, 1, INT32_MAX, err) < 0 ||
        check_range(op, "kernel height", s->k_h, 1, s->in_h + 2 * s->pad, err) < 0 ||
        check_range(op, "kernel width", s->k_w, 1, s->in_w + 2 * s->pad, err) < 0 ||
        check_range(op, "dilated kernel height", reach(s->k_h, s->dilation), 1, s->in_h + 2 * s->pad, err) <
            0 ||
        check_range(op, "dilated kernel width", reach(s->k_w, s->dilation), 1, s->in_w + 2 * s->pad, err) < 0)
        return -1;
    return 0;
}

int conv2d_check(const struct conv2d_shape *s, struct err *err)
{
    const char *op = "conv2d";
    if (check_fields(s, err) < 0)
        return -1;
    int out_c = panel_round(s->out_c, ISA_PANEL_MAX);
    int in_c = panel_round(s->in_c, ISA_PANEL_MAX);
    if (check_elements(op, "input", (int[]){s->batch, s->in_h + 2 * s->pad, s->in_w + 2 * s->pad, s->in_c},
                       err) < 0 ||
        check_elements(op, "output", (int[]){s->batch, conv2d_out_h(s), conv2d_out_w(s), out_c}, err) < 0 ||
        check_elements(op, "weight", (int[]){out_c, in_c, s->k_h, s->k_w}, err) < 0)
        return -1;
    return 0;
}

int conv2d_out_h(const struct conv2d_shape *s)
{
    return out_size(s->in_h, s->k_h, s);
}

int conv2d_out_w(const struct conv2d_shape *s)
{
    return out_size(s->in_w, s->k_w, s);
}

struct conv2d_shape conv2d_framed(const struct conv2d_shape *s)
{
    struct conv2d_shape f = *s;
    f.in_h += 2 * s->pad;
    f.in_w += 2 * s->pad;
    f.pad = 0;
    return f;
}

struct conv2d_dims conv2d_dims(const struct conv2d_shape *s)
{
    struct conv2d_dims d = {.out_h = conv2d_out_h(s), .out_w = conv2d_out_w(s)};
    d.pixels = d.out_h * d.out_w;
    d.k = s->k_h * s->k_w * s->in_c;
    d.in_row = (ptrdiff_t)s->in_w * s->in_c;
    d.in_image = s->in_h * d.in_row;
    d.n_seg = s->dilation == 1 ? s->k_h : s->k_h * s->k_w;
    d.seg_len = d.k / d.n_seg;
    d.group = 1 + 63 / d.pixels;
    return d;
}

void conv2d_window_offsets(const struct conv2d_shape *s, int32_t *at)
{
    for (int y = 0, i = 0; y < conv2d_out_h(s); y++) {
        for (int x = 0; x < conv2d_out_w(s); x++, i++)
            at[i] = (y * s->in_w + x) * s->stride * s->in_c;
    }
}

int32_t conv2d_tap_offset(const struct conv2d_shape *s, int tap)
{
    return (tap / s->k_w * s->in_w + tap % s->k_w) * s->dilation * s->in_c;
}

void conv2d_row_offsets(int n, ptrdiff_t ld, int32_t *at)
{
    for (int i = 0; i < n; i++)
        at[i] = (int32_t)(i * ld);
}

struct forward {
    const struct conv2d_shape *s;
    struct conv2d_dims d;
    const struct isa_ops *ops;
    float *out;
    const float *in;
    bool relu;
    int32_t *in_at, *out_at; /* (pixels) */
    int32_t *seg_at;         /* (n_seg) */
    float *framed;           /* (batch, in_h, in_w, in_c), when there is padding */
    float *bias;             /* (out_c) in whole panels */
    float *weight;           /* panels of (k_h, k_w, in_c) x panel */
};

static void forward_scratch(struct forward *f, struct scratch *w, int panel, bool pad)
{
    size_t out_c = (size_t)panel_round(f->s->out_c, panel);
    f->in_at = scratch_offsets(w, (size_t)f->d.pixels);
    f->out_at = scratch_offsets(w, (size_t)f->d.pixels);
    f->seg_at = scratch_offsets(w, (size_t)f->d.n_seg);
    f->bias = scratch_floats(w, out_c);
    f->weight = scratch_floats(w, out_c * (size_t)f->d.k);
    f->framed = scratch_floats(w, pad ? (size_t)f->s->batch * (size_t)f->d.in_image : 0);
}

size_t conv2d_forward_bytes(const struct conv2d_shape *s)
{
    struct conv2d_shape framed = conv2d_framed(s);
    struct forward f = {.s = &framed, .d = conv2d_dims(&framed)};
    struct scratch w = {.counting = true};
    forward_scratch(&f, &w, ISA_PANEL_MAX, s->pad);
    return w.used_bytes;
}

/* (O,C,K_H,K_W) to panels; the columns behind out_c are zeros. */
static void pack_weight(const struct forward *f, const float *weight)
{
    const struct conv2d_shape *s = f->s;
    const ptrdiff_t panel = f->ops->panel;
    const int taps = s->k_h * s->k_w;
    for (int o = 0; o < panel_round(s->out_c, (int)panel); o++) {
        float *to = f->weight + o / panel * panel * f->d.k + o % panel;
        for (int c = 0; c < s->in_c; c++) {
            for (int t = 0; t < taps; t++)
                to[((ptrdiff_t)t * s->in_c + c) * panel] = o < s->out_c ? *weight++ : 0;
        }
    }
}

static void pack_bias(const struct forward *f, const float *bias)
{
    for (int o = 0; o < panel_round(f->s->out_c, f->ops->panel); o++)
        f->bias[o] = bias && o < f->s->out_c ? bias[o] : 0;
}

/* Segments first..first+n-1 of one panel of output channels, for images begin..end-1. */
static void forward_block(const struct forward *f, int channel, int first, int n, int begin, int end)
{
    const struct conv2d_shape *s = f->s;
    int panel = f->ops->panel;
    struct isa_gemm g = {
        .a_row = f->in_at,
        .a_seg = f->seg_at + first,
        .a_step = 1,
        .n_seg = n,
        .seg_len = f->d.seg_len,
        .b = f->weight + (ptrdiff_t)channel * f->d.k + (ptrdiff_t)first * f->d.seg_len * panel,
        .ldb = panel,
        .c_row = f->out_at,
        .rows = f->d.pixels,
        .cols = s->out_c - channel < panel ? s->out_c - channel : panel,
        .bias = f->bias + channel,
        .accumulate = first > 0,
        .relu = f->relu && first + n == f->d.n_seg,
    };
    for (int i = begin; i < end; i++) {
        g.a = f->in + i * f->d.in_image;
        g.c = f->out + (ptrdiff_t)i * f->d.pixels * s->out_c + channel;
        f->ops->gemm(&g);
    }
}

static void forward_images(void *arg, int begin, int end)
{
    const struct forward *f = arg;
    int panel = f->ops->panel;
    int64_t fit = CONV2D_B_BYTES / ((int64_t)f->d.seg_len * panel * (int)sizeof(float));
    int all = f->d.n_seg;
    int segs = fit < 1 ? 1 : fit < all ? (int)fit : all;
    for (int i = begin; i < end; i += f->d.group) {
        int stop = i + f->d.group < end ? i + f->d.group : end;
        for (int channel = 0; channel < f->s->out_c; channel += panel) {
            for (int k = 0; k < all; k += segs)
                forward_block(f, channel, k, segs < all - k ? segs : all - k, i, stop);
        }
    }
}

void cpu_conv2d_forward(struct kctx *ctx, const struct conv2d_shape *s, float *out, const float *in,
                        const float *weight, const float *bias, bool relu)
{
    struct conv2d_shape framed = conv2d_framed(s);
    struct forward f = {
        .s = &framed, .d = conv2d_dims(&framed), .ops = kctx_ops(ctx), .out = out, .in = in, .relu = relu};
    struct scratch w = scratch_open(ctx);
    forward_scratch(&f, &w, f.ops->panel, s->pad);
    if (s->pad) {
        conv2d_frame(ctx, s, f.framed, in);
        f.in = f.framed;
    }
    conv2d_window_offsets(f.s, f.in_at);
    conv2d_row_offsets(f.d.pixels, s->out_c, f.out_at);
    for (int i = 0; i < f.d.n_seg; i++)
        f.seg_at[i] =
            f.d.n_seg == s->k_h ? (int32_t)(i * s->dilation * f.d.in_row) : conv2d_tap_offset(f.s, i);
    pack_weight(&f, weight);
    pack_bias(&f, bias);
    kctx_run(ctx, s->batch, forward_images, &f);
}
