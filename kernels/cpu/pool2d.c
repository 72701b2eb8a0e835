/* pool2d.c - max and average pooling, image by image. */
#include "kernels/pool2d.h"
#include "kernels/cpu/ops.h"
#include "kernels/cpu/run.h"

#include <string.h>

enum { WINDOW_MAX = 15 };

int pool2d_check(const struct pool2d_shape *s, struct err *err)
{
    const char *op = "pool2d";
    if (check_range(op, "batch", s->batch, 1, INT32_MAX, err) < 0 ||
        check_range(op, "input height", s->in_h, 1, INT32_MAX - WINDOW_MAX, err) < 0 ||
        check_range(op, "input width", s->in_w, 1, INT32_MAX - WINDOW_MAX, err) < 0 ||
        check_range(op, "channels", s->in_c, 1, INT32_MAX, err) < 0 ||
        check_range(op, "window", s->window, 1, WINDOW_MAX, err) < 0 ||
        check_range(op, "padding", s->pad, 0, s->window / 2, err) < 0)
        return -1;
    int side = (s->in_h < s->in_w ? s->in_h : s->in_w) + 2 * s->pad;
    if (check_range(op, "window", s->window, 1, side < WINDOW_MAX ? side : WINDOW_MAX, err) < 0 ||
        check_range(op, "stride", s->stride, 1, INT32_MAX, err) < 0)
        return -1;
    return check_elements(op, "input", (int[]){s->batch, s->in_h + 2 * s->pad, s->in_w + 2 * s->pad, s->in_c},
                          err);
}

int pool2d_out_h(const struct pool2d_shape *s)
{
    return (s->in_h + 2 * s->pad - s->window) / s->stride + 1;
}

int pool2d_out_w(const struct pool2d_shape *s)
{
    return (s->in_w + 2 * s->pad - s->window) / s->stride + 1;
}

struct job {
    const struct pool2d_shape *s;
    const struct isa_ops *ops;
    bool mean;
    float *out, *din;
    uint8_t *argmax;
    const float *in, *dout, *fwd_out;
    const uint8_t *argmax_in;
    bool overlap;
    bool zero_first; /* din: windows overlap or leave some pixels out */
};

static ptrdiff_t image_floats(const struct pool2d_shape *s)
{
    return (ptrdiff_t)s->in_h * s->in_w * s->in_c;
}

/* The part of a window that lies in the image: its first row (or column), counted from the window's, and how
 * many. `at` is where the window begins. */
static int clip(int at, int window, int side, int *ret_count)
{
    int first = at < 0 ? -at : 0;
    int end = side - at < window ? side - at : window;
    *ret_count = end - first;
    return first;
}

/* The windows of one line of output pixels. */
struct line {
    struct isa_pool pool;
    int first_row;
    ptrdiff_t at; /* of the first row that they share, in the image */
};

static struct line line_at(const struct job *j, int y)
{
    const struct pool2d_shape *s = j->s;
    struct line l = {.pool = {.window = s->window,
                              .c = s->in_c,
                              .cols = s->window,
                              .area = s->window * s->window,
                              .row = (ptrdiff_t)s->in_w * s->in_c,
                              .add = j->overlap}};
    int top = y * s->stride - s->pad;
    l.first_row = clip(top, s->window, s->in_h, &l.pool.rows);
    l.pool.first = l.first_row * s->window;
    l.at = (top + l.first_row) * l.pool.row;
    return l;
}

/* Makes `pool` that of pixel x; returns the offset of its window's first pixel in the image. */
static ptrdiff_t pixel_at(const struct job *j, struct line *l, int x)
{
    const struct pool2d_shape *s = j->s;
    int left = x * s->stride - s->pad;
    int first_col = 0;
    if (s->pad) {
        first_col = clip(left, s->window, s->in_w, &l->pool.cols);
        l->pool.first = l->first_row * s->window + first_col;
        if (s->inside)
            l->pool.area = l->pool.rows * l->pool.cols;
    }
    return l->at + (ptrdiff_t)(left + first_col) * s->in_c;
}

static void forward_images(void *arg, int begin, int end)
{
    const struct job *j = arg;
    const struct pool2d_shape *s = j->s;
    int out_h = pool2d_out_h(s);
    int out_w = pool2d_out_w(s);
    for (int i = begin; i < end; i++) {
        const float *image = j->in + i * image_floats(s);
        ptrdiff_t o = (ptrdiff_t)i * out_h * out_w * s->in_c;
        for (int y = 0; y < out_h; y++) {
            struct line l = line_at(j, y);
            for (int x = 0; x < out_w; x++, o += s->in_c) {
                ptrdiff_t at = pixel_at(j, &l, x);
                if (j->mean)
                    j->ops->avgpool_forward(&l.pool, j->out + o, image + at);
                else
                    j->ops->pool_forward(&l.pool, j->out + o, j->argmax ? j->argmax + o : NULL, image + at);
            }
        }
    }
}

void cpu_maxpool2d_forward(struct kctx *ctx, const struct pool2d_shape *s, float *out, uint8_t *argmax,
                           const float *in)
{
    struct job j = {.s = s, .ops = kctx_ops(ctx), .out = out, .argmax = argmax, .in = in};
    kctx_run(ctx, s->batch, forward_images, &j);
}

void cpu_avgpool2d_forward(struct kctx *ctx, const struct pool2d_shape *s, float *out, const float *in)
{
    struct job j = {.s = s, .ops = kctx_ops(ctx), .mean = true, .out = out, .in = in};
    kctx_run(ctx, s->batch, forward_images, &j);
}

static void backward_images(void *arg, int begin, int end)
{
    const struct job *j = arg;
    const struct pool2d_shape *s = j->s;
    int out_h = pool2d_out_h(s);
    int out_w = pool2d_out_w(s);
    for (int i = begin; i < end; i++) {
        float *image = j->din + i * image_floats(s);
        ptrdiff_t o = (ptrdiff_t)i * out_h * out_w * s->in_c;
        if (j->zero_first)
            memset(image, 0, (size_t)image_floats(s) * sizeof(float));
        for (int y = 0; y < out_h; y++) {
            struct line l = line_at(j, y);
            for (int x = 0; x < out_w; x++, o += s->in_c) {
                ptrdiff_t at = pixel_at(j, &l, x);
                if (j->mean)
                    j->ops->avgpool_backward(&l.pool, image + at, j->dout + o);
                else
                    j->ops->pool_backward(&l.pool, image + at, j->dout + o, j->argmax_in + o,
                                          j->fwd_out ? j->fwd_out + o : NULL);
            }
        }
    }
}

static void backward(struct kctx *ctx, struct job *j)
{
    const struct pool2d_shape *s = j->s;
    j->ops = kctx_ops(ctx);
    j->overlap = s->stride < s->window;
    j->zero_first =
        j->mean || s->pad || s->stride != s->window || s->in_h % s->window != 0 || s->in_w % s->window != 0;
    kctx_run(ctx, s->batch, backward_images, j);
}

void cpu_maxpool2d_backward(struct kctx *ctx, const struct pool2d_shape *s, float *din, const float *dout,
                            const uint8_t *argmax, const float *out)
{
    backward(ctx, &(struct job){.s = s, .din = din, .dout = dout, .argmax_in = argmax, .fwd_out = out});
}

void cpu_avgpool2d_backward(struct kctx *ctx, const struct pool2d_shape *s, float *din, const float *dout)
{
    backward(ctx, &(struct job){.s = s, .mean = true, .din = din, .dout = dout});
}
