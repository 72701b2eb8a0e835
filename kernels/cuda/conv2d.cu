/* conv2d.cu - implicit products: the windows of an image are a matrix that is never written down, but read where it is.
 *
 * k of the forward pass, and of the input's gradient, is (tap, channel), the channel fastest, as activations lie: so four
 * neighbours in k are four channels of a pixel (QUADS), where the number of channels and the addresses allow. The bias's
 * gradient is one more column of the weights' product, that of an input which is 1 everywhere.
 */
#include "kernels/cuda/divide.cuh"
#include "kernels/cuda/operands.cuh"

namespace
{

/* A convolution's numbers as kernels want them. */
struct geometry {
    divisor h, w, c, oh, ow, o;
    divisor k_w;
    int taps;
    divisor stride;
    int pad, dilation;
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

/* A pixel of the output: where its window begins in the input (perhaps outside), and that place's index. */
struct window {
    int64_t at;
    int y, x;
};

__device__ window window_at(const geometry &g, int pixel)
{
    const int row = pixel / g.ow;
    const int image = row / g.oh;
    const int y = row % g.oh * g.stride - g.pad;
    const int x = pixel % g.ow * g.stride - g.pad;
    return window{(((int64_t)image * g.h + y) * g.w + x) * g.c, y, x};
}

/* A place of the kernel and a channel of the input: its way from where a window begins. */
struct tap {
    int at, y, x;
};

__device__ tap tap_at(const geometry &g, int k)
{
    const int place = k / g.c;
    const int y = place / g.k_w * g.dilation;
    const int x = place % g.k_w * g.dilation;
    return tap{(y * g.w + x) * g.c + k % g.c, y, x};
}

__device__ bool inside(const geometry &g, const window &o, const tap &s)
{
    return (unsigned)(o.y + s.y) < (unsigned)g.h.d && (unsigned)(o.x + s.x) < (unsigned)g.w.d;
}

/* (pixels of the output) x (tap, input channel) */
template <bool Q> struct windows {
    static constexpr bool K_FAST = true;
    static constexpr bool QUADS = Q;
    typedef window outer;
    typedef tap step;
    typedef pack<float> quad;
    geometry g;
    const float *in;

    __device__ outer at_outer(int pixel) const
    {
        return window_at(g, pixel);
    }
    __device__ step at_step(int k) const
    {
        return tap_at(g, k);
    }
    __device__ float read(const outer &o, const step &s) const
    {
        return inside(g, o, s) ? in[o.at + s.at] : 0.0F;
    }
    __device__ pack<float> read_quad(const outer &o, const step &s) const
    {
        return inside(g, o, s) ? load_pack(in + o.at + s.at) : pack<float>{};
    }
};

/* The same the other way round, for the weights' gradient: (tap, input channel) x (pixels of the output). Behind the last comes the
 * bias's input, the one at ALL_ONES. */

template <bool Q> struct windows_by_tap {
    static constexpr bool K_FAST = false;
    static constexpr bool QUADS = Q;
    typedef tap outer;
    typedef window step;
    typedef pack<float> quad;
    geometry g;
    const float *in;

    __device__ outer at_outer(int at) const
    {
        return at < g.taps * g.c ? tap_at(g, at) : tap{(int)ALL_ONES, 0, 0};
    }
    __device__ step at_step(int pixel) const
    {
        return window_at(g, pixel);
    }
    __device__ float read(const outer &o, const step &s) const
    {
        if (o.at == ALL_ONES)
            return 1.0F;
        return inside(g, s, o) ? in[s.at + o.at] : 0.0F;
    }
    __device__ pack<float> read_quad(const outer &o, const step &s) const
    {
        if (o.at == ALL_ONES)
            return pack<float>{1, 1, 1, 1};
        return inside(g, s, o) ? load_pack(in + s.at + o.at) : pack<float>{};
    }
};

/* Weights (O,C,taps) as (output channel) x (tap, input channel), or as (input channel) x (tap, output channel). */
struct weights {
    static constexpr bool K_FAST = true;
    static constexpr bool QUADS = false;
    typedef int outer;
    typedef int step;
    typedef pack<float> quad;
    const float *weight;
    int by_outer, by_channel;
    divisor channels; /* of a step */

    __device__ outer at_outer(int i) const
    {
        return i * by_outer;
    }
    __device__ step at_step(int k) const
    {
        return k % channels * by_channel + k / channels;
    }
    __device__ float read(outer o, step s) const
    {
        return weight[o + s];
    }
};

/* Copied to where a step's lie side by side: (step) x (n of outer). */
__global__ void conv2d_pack_weights(float *packed, weights x, divisor n, int all)
{
    const int i = (int)each_first();
    if (i < all)
        packed[i] = x.read(x.at_outer(i % n), x.at_step(i / n));
}

/* (pixels of the input) x (tap, output channel): what each tap of each output that saw the pixel sends back. */
template <bool Q> struct gradient_windows {
    static constexpr bool K_FAST = true;
    static constexpr bool QUADS = Q;
    struct outer {
        int64_t image; /* where its outputs begin */
        int y, x;
    };
    struct step {
        int channel, y, x;
    };
    typedef masked_quad quad;
    geometry g;
    gradient from;

    __device__ outer at_outer(int pixel) const
    {
        const int row = pixel / g.w;
        return outer{(int64_t)(row / g.h) * g.oh * g.ow * g.o, row % g.h + g.pad, pixel % g.w + g.pad};
    }
    __device__ step at_step(int k) const
    {
        const int place = k / g.o;
        return step{k % g.o, place / g.k_w * g.dilation, place % g.k_w * g.dilation};
    }
    /* The output's index, or -1 where there is none. */
    __device__ int64_t index(const outer &o, const step &s) const
    {
        const int y = o.y - s.y;
        const int x = o.x - s.x;
        if (y < 0 || x < 0)
            return -1;
        const int row = y / g.stride;
        const int col = x / g.stride;
        if (row * g.stride != y || col * g.stride != x || row >= g.oh || col >= g.ow)
            return -1;
        return o.image + (int64_t)(row * g.ow + col) * g.o + s.channel;
    }
    __device__ float read(const outer &o, const step &s) const
    {
        const int64_t i = index(o, s);
        return i < 0 ? 0.0F : from.at(i);
    }
    __device__ masked_quad read_quad(const outer &o, const step &s) const
    {
        const int64_t i = index(o, s);
        return i < 0 ? masked_quad{} : from.quad_at(i);
    }
};

/* Weights (O,C,taps) from (output channel) x (tap, input channel), and behind these the bias's. */
struct store_weights {
    geometry g;
    float *dweight, *dbias;
    __device__ void put(int row, int col, const float *v, int n) const
    {
        for (int i = 0; i < n; i++) {
            const int at = col + i;
            if (at < g.taps * g.c)
                dweight[((int64_t)row * g.c + at % g.c) * g.taps + at / g.c] = v[i];
            else
                dbias[row] = v[i];
        }
    }
};

/* Weights are read at places far apart, so they are packed first, at the end of the memory for parts. */
template <class Cut, class A>
void packed_product(struct cuda *c, int rows, int cols, int k, A a, weights b, store_rows<> store)
{
    const int all = k * cols;
    const int64_t room = CUDA_PARTS_BYTES - (int64_t)all * (int64_t)sizeof(float);
    float *packed = (float *)((char *)c->parts + room);

    LAUNCH(c, blocks_for(all, EACH_THREADS), EACH_THREADS, conv2d_pack_weights, packed, b, divisor(cols),
           all);
    split_launch<Cut>(c, rows, cols, k, parts_of<Cut>(c, rows, cols, k, room), a,
                      matrix<false, true, plain<>>{{packed}, cols}, store);
}

/* A product of pixels and weights, by the largest tiles that fill the GPU: they do more for what they read. */
template <class A>
void pixels_product(struct cuda *c, int rows, int cols, int k, A a, weights b, store_rows<> store)
{
    constexpr int64_t PACKED_MAX = CUDA_PARTS_BYTES / 2 / (int64_t)sizeof(float);
    constexpr int PACKED_STEPS = 8; /* from so many on, packed weights are worth a launch */

    if (!store.quads || (int64_t)k * cols > PACKED_MAX) {
        product_launch<small_cut>(c, rows, cols, k, a, b, store);
        return;
    }
    if constexpr (A::QUADS) {
        if (cols <= narrow_cut::COLS && fills(c, tiles_of<narrow_cut>(rows, cols))) {
            packed_product<narrow_cut>(c, rows, cols, k, a, b, store);
            return;
        }
        if (cols > narrow_cut::COLS && fills(c, tiles_of<large_cut>(rows, cols))) {
            packed_product<large_cut>(c, rows, cols, k, a, b, store);
            return;
        }
        if (k >= PACKED_STEPS * STEP) {
            packed_product<middle_cut>(c, rows, cols, k, a, b, store);
            return;
        }
    }
    product_launch<small_cut>(c, rows, cols, k, a, b, store);
}

template <bool Q>
void weight_gradient(struct cuda *c, const geometry &g, int pixels, float *dweight, float *dbias,
                     gradient from, const float *in)
{
    const int cols = g.taps * g.c + (dbias ? 1 : 0);
    const matrix<false, Q, gradient> a = {from, g.o};
    const windows_by_tap<Q> b = {g, in};
    const store_weights store = {g, dweight, dbias};

    if constexpr (Q)
        if (g.o > small_cut::ROWS && fills(c, tiles_of<large_cut>(g.o, cols) * (pixels / (16 * STEP)))) {
            product_launch<large_cut>(c, g.o, cols, pixels, a, b, store);
            return;
        }
    product_launch<small_cut>(c, g.o, cols, pixels, a, b, store);
}

void input_gradient(struct cuda *c, const struct conv2d_shape *s, const geometry &g, float *din,
                    gradient from, const float *weight)
{
    const int pixels = s->batch * g.h * g.w;
    const weights b = {weight, g.taps, g.c * g.taps, g.o};
    const store_rows<> store = store_rows_of(din, nullptr, g.c, false);

    if (in_quads(g.o, from.dout) && pack_aligned(from.out))
        pixels_product(c, pixels, g.c, g.taps * g.o, gradient_windows<true>{g, from}, b, store);
    else
        pixels_product(c, pixels, g.c, g.taps * g.o, gradient_windows<false>{g, from}, b, store);
}

} // namespace

void cuda_conv2d_forward(struct kctx *ctx, const struct conv2d_shape *s, float *out, const float *in,
                         const float *weight, const float *bias, bool relu)
{
    struct cuda *c = cuda_of(ctx);
    const geometry g = geometry_of(s);
    const int pixels = s->batch * g.oh * g.ow;
    const weights b = {weight, g.c * g.taps, g.taps, g.c};
    const store_rows<> store = store_rows_of(out, bias, g.o, relu);

    if (in_quads(g.c, in))
        pixels_product(c, pixels, g.o, g.taps * g.c, windows<true>{g, in}, b, store);
    else
        pixels_product(c, pixels, g.o, g.taps * g.c, windows<false>{g, in}, b, store);
}

void cuda_conv2d_backward(struct kctx *ctx, const struct conv2d_shape *s, float *din, float *dweight,
                          float *dbias, const float *dout, const float *out, const float *in,
                          const float *weight)
{
    struct cuda *c = cuda_of(ctx);
    const geometry g = geometry_of(s);
    const int pixels = s->batch * g.oh * g.ow;
    const gradient from = {dout, out};
    const bool beside = din && din != in; /* neither product fills the GPU to its end */

    if (beside)
        cuda_second_begin(c);
    if (in_quads(g.c, in) && in_quads(g.o, dout) && pack_aligned(out))
        weight_gradient<true>(c, g, pixels, dweight, dbias, from, in);
    else
        weight_gradient<false>(c, g, pixels, dweight, dbias, from, in);
    if (beside)
        cuda_second_end(c);
    if (din)
        input_gradient(c, s, g, din, from, weight);
    if (beside)
        cuda_second_join(c);
}
