/* maxpool2d.c - windows in order, image by image. */
#include "kernels/maxpool2d.h"
#include "kernels/cpu/run.h"

#include <string.h>

int maxpool2d_check(const struct maxpool2d_shape *s, struct err *err)
{
    const char *op = "maxpool2d";
    if (check_range(op, "batch", s->batch, 1, INT32_MAX, err) < 0 ||
        check_range(op, "input height", s->in_h, 1, INT32_MAX, err) < 0 ||
        check_range(op, "input width", s->in_w, 1, INT32_MAX, err) < 0 ||
        check_range(op, "channels", s->in_c, 1, INT32_MAX, err) < 0)
        return -1;
    int side = s->in_h < s->in_w ? s->in_h : s->in_w;
    if (check_range(op, "window", s->window, 1, side < 15 ? side : 15, err) < 0 ||
        check_range(op, "stride", s->stride, 1, INT32_MAX, err) < 0)
        return -1;
    return check_elements(op, "input", (int[]){s->batch, s->in_h, s->in_w, s->in_c}, err);
}

int maxpool2d_out_h(const struct maxpool2d_shape *s)
{
    return (s->in_h - s->window) / s->stride + 1;
}

int maxpool2d_out_w(const struct maxpool2d_shape *s)
{
    return (s->in_w - s->window) / s->stride + 1;
}

struct job {
    const struct maxpool2d_shape *s;
    const struct isa_ops *ops;
    struct isa_pool pool;
    float *out, *din;
    uint8_t *argmax;
    const float *in, *dout, *fwd_out;
    const uint8_t *argmax_in;
    bool zero_first; /* din: windows overlap or leave some pixels out */
};

static ptrdiff_t image_floats(const struct maxpool2d_shape *s)
{
    return (ptrdiff_t)s->in_h * s->in_w * s->in_c;
}

static void forward_images(void *arg, int begin, int end)
{
    const struct job *j = arg;
    const struct maxpool2d_shape *s = j->s;
    int out_h = maxpool2d_out_h(s);
    int out_w = maxpool2d_out_w(s);
    for (int i = begin; i < end; i++) {
        for (int y = 0; y < out_h; y++) {
            ptrdiff_t o = ((ptrdiff_t)i * out_h + y) * out_w * s->in_c;
            const float *in = j->in + i * image_floats(s) + (ptrdiff_t)y * s->stride * j->pool.row;
            for (int x = 0; x < out_w; x++, o += s->in_c, in += (ptrdiff_t)s->stride * s->in_c)
                j->ops->pool_forward(&j->pool, j->out + o, j->argmax ? j->argmax + o : NULL, in);
        }
    }
}

void maxpool2d_forward(struct kctx *ctx, const struct maxpool2d_shape *s, float *out, uint8_t *argmax,
                       const float *in)
{
    struct job j = {.s = s, .ops = kctx_ops(ctx), .out = out, .argmax = argmax, .in = in};
    j.pool = (struct isa_pool){.window = s->window, .c = s->in_c, .row = (ptrdiff_t)s->in_w * s->in_c};
    kctx_run(ctx, s->batch, forward_images, &j);
}

static void backward_images(void *arg, int begin, int end)
{
    const struct job *j = arg;
    const struct maxpool2d_shape *s = j->s;
    int out_h = maxpool2d_out_h(s);
    int out_w = maxpool2d_out_w(s);
    for (int i = begin; i < end; i++) {
        if (j->zero_first)
            memset(j->din + i * image_floats(s), 0, (size_t)image_floats(s) * sizeof(float));
        for (int y = 0; y < out_h; y++) {
            ptrdiff_t o = ((ptrdiff_t)i * out_h + y) * out_w * s->in_c;
            float *din = j->din + i * image_floats(s) + (ptrdiff_t)y * s->stride * j->pool.row;
            for (int x = 0; x < out_w; x++, o += s->in_c, din += (ptrdiff_t)s->stride * s->in_c)
                j->ops->pool_backward(&j->pool, din, j->dout + o, j->argmax_in + o,
                                      j->fwd_out ? j->fwd_out + o : NULL);
        }
    }
}

void maxpool2d_backward(struct kctx *ctx, const struct maxpool2d_shape *s, float *din, const float *dout,
                        const uint8_t *argmax, const float *out)
{
    struct job j = {
        .s = s, .ops = kctx_ops(ctx), .din = din, .dout = dout, .argmax_in = argmax, .fwd_out = out};
    j.pool = (struct isa_pool){.window = s->window, .c = s->in_c, .row = (ptrdiff_t)s->in_w * s->in_c};
    j.pool.add = s->stride < s->window;
    j.zero_first = s->stride != s->window || s->in_h % s->window != 0 || s->in_w % s->window != 0;
    kctx_run(ctx, s->batch, backward_images, &j);
}
