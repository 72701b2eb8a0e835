/* conv2d.cu - implicit products: the windows of an image are a matrix that is never written down, but read where it is.
 *
 * k of the forward pass, and of the input's gradient, is (tap, channel), the channel fastest, as activations lie.
 */
#include "kernels/cuda/columns.cuh"
#include "kernels/cuda/tile.cuh"

namespace
{

/* A convolution's numbers as kernels want them. */
struct geometry {
    int h, w, c, oh, ow, o;
    int k_w, taps;
    int stride, pad, dilation;
};

int out_size(int in, int k, const struct conv2d_shape *s)
{
    return (int)((in + 2 * (int64_t)s->pad - ((int64_t)(k - 1) * s->dilation + 1)) / s->stride + 1);
}

geometry geometry_of(const struct conv2d_shape *s)
{
    return geometry{s->in_h,
                    s->in_w,
                    s->in_c,
                    out_size(s->in_h, s->k_h, s),
                    out_size(s->in_w, s->k_w, s),
                    s->out_c,
                    s->k_w,
                    s->k_h * s->k_w,
                    s->stride,
                    s->pad,
                    s->dilation};
}

/* A pixel of the output: its image, and where its window begins in the input (perhaps outside). */
struct window {
    int image, y, x;
};

__device__ window window_at(const geometry &g, int pixel)
{
    int row = pixel / g.ow;
    return window{row / g.oh, row % g.oh * g.stride - g.pad, pixel % g.ow * g.stride - g.pad};
}

/* A place of the kernel, and a channel. */
struct tap {
    int y, x, channel;
};

__device__ tap tap_at(const geometry &g, int k, int channels)
{
    int at = k / channels;
    return tap{at / g.k_w * g.dilation, at % g.k_w * g.dilation, k % channels};
}

__device__ float read_window(const geometry &g, const float *in, const window &o, const tap &s)
{
    int y = o.y + s.y;
    int x = o.x + s.x;
    bool inside = y >= 0 && y < g.h && x >= 0 && x < g.w;
    return inside ? in[(((int64_t)o.image * g.h + y) * g.w + x) * g.c + s.channel] : 0.0F;
}

/* (pixels of the output) x (tap, input channel) */
struct windows {
    static constexpr bool K_FAST = true;
    typedef window outer;
    typedef tap step;
    geometry g;
    const float *in;

    __device__ outer at_outer(int pixel) const
    {
        return window_at(g, pixel);
    }
    __device__ step at_step(int k) const
    {
        return tap_at(g, k, g.c);
    }
    __device__ float read(const outer &o, const step &s) const
    {
        return read_window(g, in, o, s);
    }
};

/* The same the other way round, for the weights' gradient: (tap, input channel) x (pixels of the output). */
struct windows_by_tap {
    static constexpr bool K_FAST = false;
    typedef tap outer;
    typedef window step;
    geometry g;
    const float *in;

    __device__ outer at_outer(int at) const
    {
        return tap_at(g, at, g.c);
    }
    __device__ step at_step(int pixel) const
    {
        return window_at(g, pixel);
    }
    __device__ float read(const outer &o, const step &s) const
    {
        return read_window(g, in, s, o);
    }
};

/* Weights (O,C,taps) as (output channel) x (tap, input channel). */
struct weights {
    static constexpr bool K_FAST = true;
    typedef int outer;
    typedef int step;
    geometry g;
    const float *weight;

    __device__ outer at_outer(int o) const
    {
        return o * g.c * g.taps;
    }
    __device__ step at_step(int k) const
    {
        return k % g.c * g.taps + k / g.c;
    }
    __device__ float read(outer o, step s) const
    {
        return weight[o + s];
    }
};

/* And as (input channel) x (tap, output channel). */
struct weights_back {
    static constexpr bool K_FAST = true;
    typedef int outer;
    typedef int step;
    geometry g;
    const float *weight;

    __device__ outer at_outer(int c) const
    {
        return c * g.taps;
    }
    __device__ step at_step(int k) const
    {
        return k % g.o * g.c * g.taps + k / g.o;
    }
    __device__ float read(outer o, step s) const
    {
        return weight[o + s];
    }
};

/* The output's gradient, behind a ReLU when there is `out`. */
struct gradient {
    const float *dout, *out;
    __device__ float at(int64_t i) const
    {
        return !out || out[i] > 0 ? dout[i] : 0.0F;
    }
};

/* (pixels of the input) x (tap, output channel): what each tap of each output that saw the pixel sends back. */
struct gradient_windows {
    static constexpr bool K_FAST = true;
    struct outer {
        int image, y, x;
    };
    typedef tap step;
    geometry g;
    gradient from;

    __device__ outer at_outer(int pixel) const
    {
        int row = pixel / g.w;
        return outer{row / g.h, row % g.h + g.pad, pixel % g.w + g.pad};
    }
    __device__ step at_step(int k) const
    {
        return tap_at(g, k, g.o);
    }
    __device__ float read(const outer &o, const step &s) const
    {
        int y = o.y - s.y;
        int x = o.x - s.x;
        if (y < 0 || x < 0 || y % g.stride != 0 || x % g.stride != 0)
            return 0.0F;
        y /= g.stride;
        x /= g.stride;
        if (y >= g.oh || x >= g.ow)
            return 0.0F;
        return from.at((((int64_t)o.image * g.oh + y) * g.ow + x) * g.o + s.channel);
    }
};

/* (output channel) x (pixels of the output) */
struct gradient_by_channel {
    static constexpr bool K_FAST = false;
    typedef int outer;
    typedef int64_t step;
    geometry g;
    gradient from;

    __device__ outer at_outer(int o) const
    {
        return o;
    }
    __device__ step at_step(int pixel) const
    {
        return (int64_t)pixel * g.o;
    }
    __device__ float read(outer o, step s) const
    {
        return from.at(s + o);
    }
};

struct store_pixels {
    float *out;
    const float *bias;
    int cols;
    bool relu;
    __device__ void put(int row, int col, int, float v) const
    {
        if (bias)
            v += bias[col];
        out[(int64_t)row * cols + col] = relu && v < 0 ? 0.0F : v; /* NaN stays */
    }
};

/* Where element (o, (tap, channel)) of the weights' gradient lies. */
__device__ int64_t weight_index(const geometry &g, int o, int at)
{
    return ((int64_t)o * g.c + at % g.c) * g.taps + at / g.c;
}

struct store_weights {
    geometry g;
    float *dweight;
    __device__ void put(int row, int col, int, float v) const
    {
        dweight[weight_index(g, row, col)] = v;
    }
};

struct store_parts {
    float *parts;
    int rows, cols;
    __device__ void put(int row, int col, int part, float v) const
    {
        parts[((int64_t)part * rows + row) * cols + col] = v;
    }
};

__global__ void conv2d_add_parts(geometry g, float *dweight, const float *parts, int n, int rows, int cols)
{
    int64_t all = (int64_t)rows * cols;
    for (int64_t i = each_first(); i < all; i += each_stride()) {
        float sum = parts[i];
        for (int p = 1; p < n; p++)
            sum += parts[p * all + i];
        dweight[weight_index(g, (int)(i / cols), (int)(i % cols))] = sum;
    }
}

void weight_gradient(struct cuda *c, const struct conv2d_shape *s, const geometry &g, float *dweight,
                     gradient from, const float *in)
{
    const int cols = g.taps * g.c;
    const int pixels = s->batch * g.oh * g.ow;
    const int splits = tile_splits(c, g.o, cols, pixels, CUDA_PARTS_BYTES);
    const int parts = tile_parts(pixels, splits);
    const gradient_by_channel a = {g, from};
    const windows_by_tap b = {g, in};

    if (parts == 1) {
        tile_launch(c, g.o, cols, pixels, 1, a, b, store_weights{g, dweight});
        return;
    }
    float *room = (float *)c->parts;
    tile_launch(c, g.o, cols, pixels, splits, a, b, store_parts{room, g.o, cols});
    LAUNCH(c, blocks_for((int64_t)g.o * cols, EACH_THREADS), EACH_THREADS, conv2d_add_parts, g, dweight, room,
           parts, g.o, cols);
}

} // namespace

void cuda_conv2d_forward(struct kctx *ctx, const struct conv2d_shape *s, float *out, const float *in,
                         const float *weight, const float *bias, bool relu)
{
    const geometry g = geometry_of(s);
    tile_launch(cuda_of(ctx), s->batch * g.oh * g.ow, g.o, g.taps * g.c, 1, windows{g, in},
                weights{g, weight}, store_pixels{out, bias, g.o, relu});
}

void cuda_conv2d_backward(struct kctx *ctx, const struct conv2d_shape *s, float *din, float *dweight,
                          float *dbias, const float *dout, const float *out, const float *in,
                          const float *weight)
{
    struct cuda *c = cuda_of(ctx);
    const geometry g = geometry_of(s);
    const gradient from = {dout, out};

    if (dbias)
        columns_sum(c, s->batch * g.oh * g.ow, g.o, bias_gradient<float>{dout, out, nullptr, g.o},
                    bias_store{dbias});
    weight_gradient(c, s, g, dweight, from, in);
    if (din)
        tile_launch(c, s->batch * g.h * g.w, g.c, g.taps * g.o, 1, gradient_windows{g, from},
                    weights_back{g, weight}, store_pixels{din, nullptr, g.c, false});
}
