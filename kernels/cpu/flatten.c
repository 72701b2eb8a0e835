/* flatten.c - transpose each image from (pixels, channels) to PyTorch's (channels, pixels) and back. */
#include "kernels/flatten.h"
#include "kernels/cpu/ops.h"
#include "kernels/cpu/run.h"

int flatten_check(const struct flatten_shape *s, struct err *err)
{
    const char *op = "flatten";
    if (check_range(op, "batch", s->batch, 1, INT32_MAX, err) < 0 ||
        check_range(op, "height", s->h, 1, INT32_MAX, err) < 0 ||
        check_range(op, "width", s->w, 1, INT32_MAX, err) < 0 ||
        check_range(op, "channels", s->c, 1, INT32_MAX, err) < 0)
        return -1;
    return check_elements(op, "input", (int[]){s->batch, s->h, s->w, s->c}, err);
}

/* `from` is n matrices of (rows, cols); `to` gets them transposed. */
static void transpose(float *to, const float *from, int n, ptrdiff_t rows, ptrdiff_t cols)
{
    for (int i = 0; i < n; i++, to += rows * cols, from += rows * cols) {
        for (ptrdiff_t c = 0; c < cols; c++) {
            for (ptrdiff_t r = 0; r < rows; r++)
                to[c * rows + r] = from[r * cols + c];
        }
    }
}

void cpu_flatten_forward(struct kctx *ctx, const struct flatten_shape *s, float *out, const float *in)
{
    (void)ctx;
    transpose(out, in, s->batch, (ptrdiff_t)s->h * s->w, s->c);
}

void cpu_flatten_backward(struct kctx *ctx, const struct flatten_shape *s, float *din, const float *dout)
{
    (void)ctx;
    transpose(din, dout, s->batch, s->c, (ptrdiff_t)s->h * s->w);
}
