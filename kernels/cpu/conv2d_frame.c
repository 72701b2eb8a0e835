/* conv2d_frame.c - copy images into zero-padded frames and back. */
#include "kernels/cpu/conv2d.h"

#include <string.h>

struct frame {
    const struct conv2d_shape *s;
    struct conv2d_shape framed;
    float *to;
    const float *from;
};

static ptrdiff_t image_floats(const struct conv2d_shape *s)
{
    return (ptrdiff_t)s->in_h * s->in_w * s->in_c;
}

/* Where row y of image i begins inside its frame. */
static ptrdiff_t inner_row(const struct frame *f, int i, int y)
{
    const struct conv2d_shape *big = &f->framed;
    return i * image_floats(big) + ((ptrdiff_t)(y + f->s->pad) * big->in_w + f->s->pad) * big->in_c;
}

static void frame_images(void *arg, int begin, int end)
{
    const struct frame *f = arg;
    const size_t row = (size_t)f->s->in_w * (size_t)f->s->in_c;
    for (int i = begin; i < end; i++) {
        memset(f->to + i * image_floats(&f->framed), 0, (size_t)image_floats(&f->framed) * sizeof *f->to);
        for (int y = 0; y < f->s->in_h; y++)
            memcpy(f->to + inner_row(f, i, y), f->from + i * image_floats(f->s) + y * (ptrdiff_t)row,
                   row * sizeof *f->to);
    }
}

void conv2d_frame(struct kctx *ctx, const struct conv2d_shape *s, float *framed, const float *in)
{
    struct frame f = {.s = s, .framed = conv2d_framed(s), .to = framed, .from = in};
    kctx_run(ctx, s->batch, frame_images, &f);
}

static void unframe_images(void *arg, int begin, int end)
{
    const struct frame *f = arg;
    const size_t row = (size_t)f->s->in_w * (size_t)f->s->in_c;
    for (int i = begin; i < end; i++)
        for (int y = 0; y < f->s->in_h; y++)
            memcpy(f->to + i * image_floats(f->s) + y * (ptrdiff_t)row, f->from + inner_row(f, i, y),
                   row * sizeof *f->to);
}

void conv2d_unframe(struct kctx *ctx, const struct conv2d_shape *s, float *in, const float *framed)
{
    struct frame f = {.s = s, .framed = conv2d_framed(s), .to = in, .from = framed};
    kctx_run(ctx, s->batch, unframe_images, &f);
}
