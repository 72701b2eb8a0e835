/* attention.cu - the forward pass: a block for each tile of queries, which meets tile after tile of keys; each row's softmax
 * is made in passing, so the weights of a row exist a tile at a time.
 */
#include "kernels/cuda/attention.cuh"

namespace
{

/* A row's softmax so far. */
struct softmax_rows {
    float most[2], sum[2]; /* rows product_row(0) and product_row(2) */
};

/* Products of a tile into weights: *c becomes e^(c scale - most), 0 for keys behind the query. Returns by how much what was
 * summed before shrinks. scale is above 0, and counts in UNIT<E>, as most does. `whole`: no key is behind any query. */
template <class E>
__device__ void weigh(products *c, softmax_rows *rows, int query0, int key0, bool whole, float scale,
                      float *shrink)
{
    UNROLL
    for (int half = 0; half < 2; half++) {
        const int query = query0 + product_row(2 * half);
        float most = -INFINITY;
        UNROLL
        for (int j = 0; j < EIGHTS; j++)
            for (int i = 2 * half; i < 2 * half + 2; i++) {
                if (!whole && key0 + product_col(j, i) > query)
                    c->v[j][i] = -INFINITY;
                most = c->v[j][i] > most ? c->v[j][i] : most;
            }
        most = quad_most(most) * scale;
        most = rows->most[half] > most ? rows->most[half] : most;
        float sum = 0;
        UNROLL
        for (int j = 0; j < EIGHTS; j++)
            for (int i = 2 * half; i < 2 * half + 2; i++) {
                c->v[j][i] = weight_of<E>(__fmaf_rn(c->v[j][i], scale, -most));
                sum += c->v[j][i];
            }
        shrink[half] = weight_of<E>(rows->most[half] - most);
        rows->sum[half] = rows->sum[half] * shrink[half] + quad_sum(sum);
        rows->most[half] = most;
    }
}

/* What a block needs of shared memory: queries, sets of keys and values; weights where they do not stay in registers. */
template <class E> constexpr int FORWARD_TILES = 1 + 2 * STAGES<E> + (STAGES<E> == 1);
template <class E> constexpr size_t FORWARD_BYTES = FORWARD_TILES<E> *TILE_ELEMENTS<E> * sizeof(E);

template <class E> struct forward_job {
    attention_shape s;
    E *out;
    float *lse;
    const E *qkv;
    float scale; /* in UNIT<E> */
    int pieces;
    bool packed;
    bool ahead; /* the next tiles come while these are computed with */
};

template <class E>
__global__ void __launch_bounds__(ATTENTION_THREADS) attention_forward_tiles(forward_job<E> job)
{
    SHARED_BY_LAUNCH(memory);
    const attention_shape &s = job.s;
    E *q = (E *)memory;
    E *const sets = q + TILE_ELEMENTS<E>;
    const int number = (int)blockIdx.x;
    const int piece = (int)blockIdx.z; /* of the values */
    /* Late queries have the most keys: they go first. */
    const int query0 = (int)(gridDim.y - 1 - blockIdx.y) * ATTENTION_TILE;
    const int mine = warp_of() * WARP_ROWS;
    E *weights = sets + 2 * TILE_ELEMENTS<E> + mine * TILE_STRIDE<E>; /* of one set */
    const head_rows<const E> queries = rows_of_qkv(s, job.qkv, number, 0);
    const head_rows<const E> keys = rows_of_qkv(s, job.qkv, number, 1);
    const head_rows<const E> values = rows_of_qkv(s, job.qkv, number, 2);
    softmax_rows rows = {{-INFINITY, -INFINITY}, {0, 0}};
    products sum;

    clear(&sum);
    if (job.ahead) {
        load_tile(q, queries, s, query0, 0, true);
        load_tile(sets, keys, s, 0, 0, true);
        load_tile(sets + TILE_ELEMENTS<E>, values, s, 0, 0, true);
        copy_commit();
    }
    for (int key0 = 0; key0 <= query0; key0 += ATTENTION_TILE) {
        const int set = job.ahead ? key0 / ATTENTION_TILE % 2 : 0;
        E *k = sets + set * 2 * TILE_ELEMENTS<E>;
        E *v = k + TILE_ELEMENTS<E>;
        products c;
        float shrink[2];
        clear(&c);
        if (job.ahead) {
            E *next = sets + (1 - set) * 2 * TILE_ELEMENTS<E>;
            __syncthreads(); /* its last readers are done */
            if (key0 < query0) {
                load_tile(next, keys, s, key0 + ATTENTION_TILE, 0, true);
                load_tile(next + TILE_ELEMENTS<E>, values, s, key0 + ATTENTION_TILE, 0, true);
            }
            tiles_come<1>();
            multiply_rows(&c, q + mine * TILE_STRIDE<E>, k);
        }
        for (int p = 0; p < job.pieces && !job.ahead; p++) {
            __syncthreads();
            if (key0 == 0 || job.pieces > 1)
                load_tile(q, queries, s, query0, p, job.packed);
            load_tile(k, keys, s, key0, p, job.packed);
            if (p == 0)
                load_tile(v, values, s, key0, piece, job.packed);
            tiles_come<0>();
            multiply_rows(&c, q + mine * TILE_STRIDE<E>, k);
        }
        weigh<E>(&c, &rows, query0 + mine, key0, key0 < query0, job.scale, shrink);
        UNROLL
        for (int j = 0; j < EIGHTS; j++)
            for (int i = 0; i < 4; i++)
                sum.v[j][i] *= shrink[i / 2];
        multiply_products(&sum, c, weights, v);
    }
    write_products(rows_of_out(s, job.out, number), s, query0 + mine, piece, sum, 1.0F / rows.sum[0],
                   1.0F / rows.sum[1]);
    for (int half = 0; half < 2 && piece == 0; half++) {
        const int t = query0 + mine + product_row(2 * half);
        if (threadIdx.x % 4 == 0 && t < s.time)
            job.lse[(int64_t)number * s.time + t] = rows.most[half] / UNIT<E> + logf(rows.sum[half]);
    }
}

template <class E>
void run_forward(struct cuda *c, const attention_shape *s, void *out, float *lse, const void *qkv)
{
    const int pieces = head_pieces(s);
    const dim3 grid((unsigned)(s->batch * s->heads), (unsigned)time_tiles(s), (unsigned)pieces);
    const bool packed = pack_aligned(qkv) && s->size % pack<E>::N == 0;
    const forward_job<E> job = {*s,
                                (E *)out,
                                lse,
                                (const E *)qkv,
                                UNIT<E> / sqrtf((float)s->size),
                                pieces,
                                packed,
                                STAGES<E> == 2 && packed && pieces == 1};

    LAUNCH_SHARED(c, grid, ATTENTION_THREADS, FORWARD_BYTES<E>, attention_forward_tiles<E>, job);
}

} // namespace

void cuda_attention_forward(struct kctx *ctx, const struct attention_shape *s, void *out, float *lse,
                            const void *qkv)
{
    struct cuda *c = cuda_of(ctx);
    ELEMENT_CALL(c, run_forward, c, s, out, lse, qkv);
}
