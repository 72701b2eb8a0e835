/* mlp.cu - a training step of a small multilayer perceptron in one kernel: samples, both passes, loss, update. kernels/DESIGN.md says
 * which block computes what, and where they wait for each other. */
#include "kernels/cuda/cross_entropy.cuh"
#include "kernels/cuda/optim.cuh"
#include "kernels/cuda/step.cuh"

#include <stdlib.h>

namespace
{

constexpr int ROWS = QUEUED_MLP_ROWS; /* a lane's each */
constexpr int UNITS = 4;              /* of a layer, side by side, that a block computes at once */
constexpr int THREADS = 1024;
constexpr int WARPS = THREADS / WARP;
constexpr int CHUNK = 256; /* of k, in shared memory at a time */
constexpr int QUAD = pack<float>::N;
constexpr int LD = CHUNK + QUAD;
constexpr int READS = ROWS * CHUNK / THREADS; /* of inputs, by a thread, for a chunk */
constexpr int BUFFER = ROWS * QUEUED_MLP_WIDTH;
constexpr int BUFFERS = 2 * QUEUED_MLP_LAYERS;
constexpr int BLOCKS_MAX = CUDA_PARTS_BYTES / (BUFFER * (int)sizeof(float)) - BUFFERS;

static_assert(ROWS == WARP && ROWS == BLOCK_ROWS && UNITS == QUAD, "a row is a lane, and in the loss a warp");
static_assert(UNITS * CHUNK == THREADS && ROWS * LD >= WARPS * UNITS * ROWS,
              "a thread reads one weight; sums have room");

/* The buffers that all blocks share, ROWS x width of a layer: outputs and their gradients. Gradients of the last layer's are every
 * block's own. */
struct buffers {
    float *parts;
    __device__ float *out(int layer) const
    {
        return parts + (int64_t)layer * BUFFER;
    }
    __device__ float *gradient(int layer) const
    {
        return parts + (int64_t)(QUEUED_MLP_LAYERS + layer) * BUFFER;
    }
    __device__ float *own() const
    {
        return parts + (int64_t)(BUFFERS + blockIdx.x) * BUFFER;
    }
};

struct room {
    float *in, *weight; /* (ROWS, LD), (UNITS, CHUNK) */
};

/* Of k numbers a row, and for each of n units, k weights. ACROSS: weights of neighbouring units lie side by side, those of the next k
 * `by` behind; else those of neighbours in k do, and the next unit's k behind. */
template <bool ACROSS> struct operands {
    const float *in, *weight;
    int k, n, by;
};

struct chunk {
    float in[READS], weight;
};

/* A thread's part of the chunk that begins at k0. Neighbouring threads read what lies side by side. */
template <bool ACROSS> __device__ inline chunk chunk_of(const operands<ACROSS> &o, int rows, int k0)
{
    const int t = (int)threadIdx.x;
    const int unit = ACROSS ? t % UNITS : t / CHUNK;
    const int k = k0 + (ACROSS ? t / UNITS : t % CHUNK);
    const int col = k0 + t % CHUNK;
    chunk c;

    UNROLL
    for (int i = 0; i < READS; i++) {
        const int row = t / CHUNK + i * (THREADS / CHUNK);
        c.in[i] = row < rows && col < o.k ? o.in[row * o.k + col] : 0.0F;
    }
    c.weight = unit < o.n && k < o.k ? o.weight[ACROSS ? k * o.by + unit : unit * o.k + k] : 0.0F;
    return c;
}

template <bool ACROSS> __device__ inline void chunk_put(const room &m, const chunk &c)
{
    const int t = (int)threadIdx.x;

    UNROLL
    for (int i = 0; i < READS; i++)
        m.in[(t / CHUNK + i * (THREADS / CHUNK)) * LD + t % CHUNK] = c.in[i];
    m.weight[ACROSS ? t % UNITS * CHUNK + t / UNITS : t] = c.weight;
}

/* Sums over k, of thread u * WARP + row for that unit and row; of threads from UNITS * WARP on nothing. Warps take turns in k, and
 * their sums are added in their order. */
template <bool ACROSS> __device__ inline float product(const room &m, const operands<ACROSS> &o, int rows)
{
    const int warp = (int)threadIdx.x / WARP;
    float sum[UNITS] = {};
    chunk next = chunk_of(o, rows, 0);

    for (int k0 = 0; k0 < o.k; k0 += CHUNK) {
        __syncthreads();
        chunk_put<ACROSS>(m, next);
        __syncthreads();
        if (k0 + CHUNK < o.k)
            next = chunk_of(o, rows, k0 + CHUNK);
        UNROLL
        for (int i = 0; i < CHUNK / (WARPS * QUAD); i++) {
            const int k = (i * WARPS + warp) * QUAD;
            const pack<float> x = load_pack(m.in + lane() * LD + k);
            UNROLL
            for (int u = 0; u < UNITS; u++) {
                const pack<float> w = load_pack(m.weight + u * CHUNK + k);
                UNROLL
                for (int j = 0; j < QUAD; j++)
                    sum[u] = __fmaf_rn(x.v[j], w.v[j], sum[u]);
            }
        }
    }
    __syncthreads();
    UNROLL
    for (int u = 0; u < UNITS; u++)
        m.in[(warp * UNITS + u) * ROWS + lane()] = sum[u];
    __syncthreads();
    float all = 0;
    for (int w = 0; w < WARPS && warp < UNITS; w++)
        all += m.in[(w * UNITS + warp) * ROWS + lane()];
    return all;
}

/* This block's first unit of a layer, and how far the next is. */
__device__ inline int unit_first()
{
    return (int)blockIdx.x * UNITS;
}

__device__ inline int unit_stride()
{
    return (int)gridDim.x * UNITS;
}

/* Whether this thread has a unit and row of the group that begins at `first`, and where its result lies. */
struct place {
    int unit;
    bool mine;
    int64_t at;
};

__device__ inline place place_of(int first, int width, int rows)
{
    const int unit = first + (int)threadIdx.x / WARP;
    const bool mine = (int)threadIdx.x < UNITS * WARP && unit < width && lane() < rows;

    return place{unit, mine, (int64_t)lane() * width + unit};
}

__device__ inline const float *inputs_of(const queued_mlp_step &s, const buffers &b, int layer)
{
    return layer ? b.out(layer - 1) : s.batch.x;
}

__device__ void forward(const queued_mlp_step &s, const buffers &b, const room &m, int layer)
{
    const int k = s.net.width[layer];
    const int width = s.net.width[layer + 1];
    const bool last = layer == s.net.layers - 1;

    for (int first = unit_first(); first < width; first += unit_stride()) {
        const operands<false> o = {inputs_of(s, b, layer), s.p + s.net.weight[layer] + (int64_t)first * k, k,
                                   width - first, 0};
        float v = product(m, o, s.net.rows);
        const place p = place_of(first, width, s.net.rows);
        if (!p.mine)
            continue;
        if (s.net.bias[layer] >= 0)
            v += s.p[s.net.bias[layer] + p.unit];
        b.out(layer)[p.at] = !last && v < 0 ? 0.0F : v; /* NaN stays */
    }
}

__device__ inline const float *gradient_of(const queued_mlp_step &s, const buffers &b, int layer)
{
    return layer == s.net.layers - 1 ? b.own() : b.gradient(layer);
}

/* The gradient of a layer's inputs, which are the outputs of the one before, behind its ReLU. */
__device__ void backward(const queued_mlp_step &s, const buffers &b, const room &m, int layer)
{
    const int width = s.net.width[layer];

    for (int first = unit_first(); first < width; first += unit_stride()) {
        const operands<true> o = {gradient_of(s, b, layer), s.p + s.net.weight[layer] + first,
                                  s.net.width[layer + 1], width - first, width};
        const float v = product(m, o, s.net.rows);
        const place p = place_of(first, width, s.net.rows);
        if (p.mine)
            b.gradient(layer - 1)[p.at] = b.out(layer - 1)[p.at] > 0 ? v : 0.0F;
    }
}

template <class Rule>
__device__ inline void update_one(const queued_mlp_step &s, const Rule &rule, const update_scalars &by,
                                  int64_t i, float g)
{
    typename Rule::template moments<1> x = rule.template load<1>(i);

    rule.step(by, s.p + i, &x, 0, g);
    rule.store(i, x);
}

__device__ inline const update_scalars &scalars_at(const queued_mlp_step &s, int64_t i)
{
    return s.begin.state->now.update[s.span[span_at(s.span, s.spans, i)].decay];
}

/* The gradients of a layer's weights and bias, whose input is 1, and the update with them: nobody reads these weights any more. */
template <class Rule>
__device__ void update(const queued_mlp_step &s, const buffers &b, const room &m, const Rule &rule, int layer)
{
    const int k = s.net.width[layer];
    const int width = s.net.width[layer + 1];
    const int64_t weight = s.net.weight[layer];
    const int64_t bias = s.net.bias[layer];
    const float *in = inputs_of(s, b, layer);

    for (int first = unit_first(); first < width; first += unit_stride()) {
        const place p = place_of(first, width, s.net.rows);
        __syncthreads();
        if ((int)threadIdx.x < UNITS * WARP)
            m.weight[lane() * UNITS + (int)threadIdx.x / WARP] =
                p.mine ? gradient_of(s, b, layer)[p.at] : 0.0F;
        __syncthreads();
        for (int col = (int)threadIdx.x; col < k + (bias >= 0); col += THREADS) {
            float sum[UNITS] = {};
            UNROLL_8
            for (int r = 0; r < s.net.rows; r++) {
                const float x = col < k ? in[r * k + col] : 1.0F;
                const pack<float> dy = load_pack(m.weight + r * UNITS);
                UNROLL
                for (int u = 0; u < UNITS; u++)
                    sum[u] = __fmaf_rn(dy.v[u], x, sum[u]);
            }
            const update_scalars &by = scalars_at(s, col < k ? weight : bias);
            UNROLL
            for (int u = 0; u < UNITS; u++)
                if (first + u < width)
                    update_one(s, rule, by,
                               col < k ? weight + (int64_t)(first + u) * k + col : bias + first + u, sum[u]);
        }
    }
}

/* Every block computes the loss and its gradient for itself; block 0 leaves it behind. The loss's mean. */
__device__ float loss_of(const queued_mlp_step &s, const buffers &b)
{
    SHARED(loss_part, row, BLOCK_ROWS);
    const int last = s.net.layers - 1;
    const batch all =
        batch_of(b.out(last), s.batch.labels, b.own(), s.net.rows, s.net.width[last + 1], s.smoothing, 1);

    few_rows(all, row);
    __syncthreads();
    if (blockIdx.x == 0 && threadIdx.x == 0)
        loss_write(loss_target{s.begin.own, 1, false, loss_mean{s.loss, s.net.rows, 1}}, row[0]);
    return (float)(row[0].sum / s.net.rows);
}

template <class Rule>
__global__ void __launch_bounds__(THREADS, 1)
    mlp_step(queued_mlp_step s, Rule rule, float *parts, grid_gate *gate)
{
    SHARED(float, in, ROWS *LD);
    SHARED(float, weight, UNITS *CHUNK);
    const buffers b = {parts};
    const room m = {in, weight};

    gather_from(s.gather, s.batch, s.items, s.order, gather_first(s.begin, &s.begin.state->now.first),
                (int64_t)s.net.rows * s.net.width[0]);
    grid_wait(gate);
    const bool halted = s.begin.state->halted;
    for (int layer = 0; layer < s.net.layers; layer++) {
        forward(s, b, m, layer);
        grid_wait(gate);
    }
    const bool goes_on = isfinite(loss_of(s, b)) && !halted;
    for (int layer = s.net.layers - 1; layer >= 0; layer--) {
        if (layer > 0) {
            backward(s, b, m, layer);
            grid_wait(gate);
        }
        if (goes_on)
            update(s, b, m, rule, layer);
    }
    if (blockIdx.x == 0 && threadIdx.x == 0)
        step_end_of(s.begin.state, s.begin.own, s.net.rows, s.loss, nullptr, nullptr, s.records,
                    s.begin.ring);
}

/* TK_MLP=off: a kernel per operation, to compare. */
bool takes(const struct cuda *c, const queued_mlp_step *s)
{
    const char *env = getenv("TK_MLP");
    bool fits = c->ctx.element == ELEMENT_F32 && c->precision == PRECISION_F32 &&
                !(env && !strcmp(env, "off")) && s->net.layers >= 1 && s->net.layers <= QUEUED_MLP_LAYERS &&
                s->net.rows <= QUEUED_MLP_ROWS;

    for (int i = 0; i <= s->net.layers && fits; i++)
        fits = s->net.width[i] <= QUEUED_MLP_WIDTH;
    return fits;
}

} // namespace

bool cuda_queue_mlp_step(struct kctx *ctx, const struct queued_mlp_step *s)
{
    struct cuda *c = cuda_of(ctx);
    const unsigned blocks = (unsigned)(c->sms < BLOCKS_MAX ? c->sms : BLOCKS_MAX);
    float *parts = (float *)c->parts;
    grid_gate *gate = (grid_gate *)((char *)c->parts + CUDA_GATE);

    if (!takes(c, s))
        return false;
    switch (s->rule) {
    case UPDATE_ADAM:
        LAUNCH_TOGETHER(c, blocks, THREADS, mlp_step<adam_rule>, *s, (adam_rule{s->m, s->v}), parts, gate);
        break;
    case UPDATE_SGD:
        LAUNCH_TOGETHER(c, blocks, THREADS, mlp_step<sgd_rule>, *s, sgd_rule{s->m}, parts, gate);
        break;
    }
    return true;
}
