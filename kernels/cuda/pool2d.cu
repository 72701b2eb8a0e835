/* pool2d.cu - pooling on a GPU: a thread per output element; gradients are gathered in the order of the windows. */
#include "kernels/cuda/divide.cuh"

namespace
{

struct geometry {
    divisor h, w, c, oh, ow;
    int window;
    divisor stride;
    int pad;
    bool inside;
};

int out_size(int in, const struct pool2d_shape *s)
{
    return (in + 2 * s->pad - s->window) / s->stride + 1;
}

geometry geometry_of(const struct pool2d_shape *s)
{
    return geometry{s->in_h,   s->in_w, s->in_c,  out_size(s->in_h, s), out_size(s->in_w, s), s->window,
                    s->stride, s->pad,  s->inside};
}

/* Element i of (images, rows, cols, channels); a tensor has fewer than 2^31. */
struct element {
    int image, y, x, channel;
};

__device__ element element_at(int64_t i, const divisor &rows, const divisor &cols, const divisor &channels)
{
    const int pixel = (int)i / channels;
    const int row = pixel / cols;
    return element{row / rows, row % rows, pixel % cols, (int)i % channels};
}

__device__ int index_of(int image, int y, int x, int channel, int rows, int cols, int channels)
{
    return ((image * rows + y) * cols + x) * channels + channel;
}

/* The windows along one side that hold place `at`: first..last, within 0..n-1. */
struct range {
    int first, last;
};

__device__ range windows_of(int at, const geometry &g, int n)
{
    int from = at + g.pad - g.window + 1;
    int last = (at + g.pad) / g.stride;
    return range{from > 0 ? (from + g.stride - 1) / g.stride : 0, last < n ? last : n - 1};
}

__global__ void maxpool2d_windows(geometry g, float *out, uint8_t *argmax, const float *in, int64_t n)
{
    for (int64_t i = each_first(); i < n; i += each_stride()) {
        element e = element_at(i, g.oh, g.ow, g.c);
        int top = e.y * g.stride - g.pad;
        int left = e.x * g.stride - g.pad;
        float most = 0;
        int best = -1;
        for (int k = 0, y = top, x = left; k < g.window * g.window; k++, x++) {
            if (x == left + g.window)
                y++, x = left;
            if (y < 0 || y >= g.h || x < 0 || x >= g.w)
                continue;
            float v = in[index_of(e.image, y, x, e.channel, g.h, g.w, g.c)];
            /* The first of equals; a NaN wins, the first of them too. */
            if (best < 0 || v > most || (v != v && most == most)) {
                most = v;
                best = k;
            }
        }
        out[i] = most;
        if (argmax)
            argmax[i] = (uint8_t)best;
    }
}

__global__ void maxpool2d_gradient(geometry g, float *din, const float *dout, const uint8_t *argmax,
                                   const float *out, int64_t n)
{
    for (int64_t i = each_first(); i < n; i += each_stride()) {
        element e = element_at(i, g.h, g.w, g.c);
        range ys = windows_of(e.y, g, g.oh);
        range xs = windows_of(e.x, g, g.ow);
        float sum = 0;
        for (int y = ys.first; y <= ys.last; y++)
            for (int x = xs.first; x <= xs.last; x++) {
                int o = index_of(e.image, y, x, e.channel, g.oh, g.ow, g.c);
                int k = (e.y + g.pad - y * g.stride) * g.window + e.x + g.pad - x * g.stride;
                if (argmax[o] == k && (!out || out[o] > 0))
                    sum += dout[o];
            }
        din[i] = sum;
    }
}

/* Of the window that begins at `from`: places within 0..n-1. */
__device__ int overlap(int from, const geometry &g, int n)
{
    int end = from + g.window < n ? from + g.window : n;
    return end - (from > 0 ? from : 0);
}

/* What the sum over window (y, x) is divided by. */
__device__ float area(int y, int x, const geometry &g)
{
    if (!g.inside)
        return (float)(g.window * g.window);
    return (float)(overlap(y * g.stride - g.pad, g, g.h) * overlap(x * g.stride - g.pad, g, g.w));
}

__global__ void avgpool2d_windows(geometry g, float *out, const float *in, int64_t n)
{
    for (int64_t i = each_first(); i < n; i += each_stride()) {
        element e = element_at(i, g.oh, g.ow, g.c);
        float sum = 0;
        const int top = e.y * g.stride - g.pad;
        const int left = e.x * g.stride - g.pad;
        for (int y = top; y < top + g.window; y++)
            for (int x = left; x < left + g.window; x++)
                if (y >= 0 && y < g.h && x >= 0 && x < g.w)
                    sum += in[index_of(e.image, y, x, e.channel, g.h, g.w, g.c)];
        out[i] = sum / area(e.y, e.x, g);
    }
}

__global__ void avgpool2d_gradient(geometry g, float *din, const float *dout, int64_t n)
{
    for (int64_t i = each_first(); i < n; i += each_stride()) {
        element e = element_at(i, g.h, g.w, g.c);
        range ys = windows_of(e.y, g, g.oh);
        range xs = windows_of(e.x, g, g.ow);
        float sum = 0;
        for (int y = ys.first; y <= ys.last; y++)
            for (int x = xs.first; x <= xs.last; x++)
                sum += dout[index_of(e.image, y, x, e.channel, g.oh, g.ow, g.c)] / area(y, x, g);
        din[i] = sum;
    }
}

int64_t in_len(const struct pool2d_shape *s)
{
    return (int64_t)s->batch * s->in_h * s->in_w * s->in_c;
}

int64_t out_len(const struct pool2d_shape *s, const geometry &g)
{
    return (int64_t)s->batch * g.oh * g.ow * g.c;
}

} // namespace

void cuda_maxpool2d_forward(struct kctx *ctx, const struct pool2d_shape *s, float *out, uint8_t *argmax,
                            const float *in)
{
    const geometry g = geometry_of(s);
    const int64_t n = out_len(s, g);
    LAUNCH(cuda_of(ctx), blocks_for(n, EACH_THREADS), EACH_THREADS, maxpool2d_windows, g, out, argmax, in, n);
}

void cuda_maxpool2d_backward(struct kctx *ctx, const struct pool2d_shape *s, float *din, const float *dout,
                             const uint8_t *argmax, const float *out)
{
    const int64_t n = in_len(s);
    LAUNCH(cuda_of(ctx), blocks_for(n, EACH_THREADS), EACH_THREADS, maxpool2d_gradient, geometry_of(s), din,
           dout, argmax, out, n);
}

void cuda_avgpool2d_forward(struct kctx *ctx, const struct pool2d_shape *s, float *out, const float *in)
{
    const geometry g = geometry_of(s);
    const int64_t n = out_len(s, g);
    LAUNCH(cuda_of(ctx), blocks_for(n, EACH_THREADS), EACH_THREADS, avgpool2d_windows, g, out, in, n);
}

void cuda_avgpool2d_backward(struct kctx *ctx, const struct pool2d_shape *s, float *din, const float *dout)
{
    const int64_t n = in_len(s);
    LAUNCH(cuda_of(ctx), blocks_for(n, EACH_THREADS), EACH_THREADS, avgpool2d_gradient, geometry_of(s), din,
           dout, n);
}
