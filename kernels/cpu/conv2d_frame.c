/* conv2d_frame.c - copy images into zero-padded frames and back. */
#include "kernels/cpu/conv2d.h"

#include <string.h>

struct frame {
    const struct conv2d_shape *s;
    struct conv2d_shape framed;
    float *big;      /* the frames */
    const float *in; /* conv2d_frame: images to copy into them */
    float *out;      /* conv2d_unframe: images to copy out of them */
};

static ptrdiff_t image_floats(const struct conv2d_shape *s)
{
    return (ptrdiff_t)s->in_h * s->in_w * s->in_c;
}

static void copy_images(void *arg, int begin, int end)
{
    const struct frame *f = arg;
    const struct conv2d_shape *s = f->s, *big = &f->framed;
    const ptrdiff_t row = (ptrdiff_t)s->in_w * s->in_c;
    for (int i = begin; i < end; i++) {
        float *frame = f->big + i * image_floats(big);
        ptrdiff_t at = i * image_floats(s);
        if (f->in)
            memset(frame, 0, (size_t)image_floats(big) * sizeof *frame);
        float *inner = frame + ((ptrdiff_t)s->pad * big->in_w + s->pad) * s->in_c;
        for (int y = 0; y < s->in_h; y++, at += row, inner += (ptrdiff_t)big->in_w * s->in_c)
            memcpy(f->in ? inner : f->out + at, f->in ? f->in + at : inner, (size_t)row * sizeof *inner);
    }
}

void conv2d_frame(struct kctx *ctx, const struct conv2d_shape *s, float *framed, const float *in)
{
    kctx_run(ctx, s->batch, copy_images,
             &(struct frame){.s = s, .framed = conv2d_framed(s), .big = framed, .in = in});
}

void conv2d_unframe(struct kctx *ctx, const struct conv2d_shape *s, float *in, float *framed)
{
    kctx_run(ctx, s->batch, copy_images,
             &(struct frame){.s = s, .framed = conv2d_framed(s), .big = framed, .out = in});
}
