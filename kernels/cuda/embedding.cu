/* embedding.cu - forward by packs of channels; a token's gradient by one row of threads, over its places in their order.
 *
 * Who reads the tokens has checked them (embedding.h): one that is none becomes NaN here, and has no gradient.
 */
#include "kernels/cuda/sort.cuh"
#include "kernels/cuda/vector.cuh"

namespace
{

constexpr int ROW_THREADS = 128;

/* Where in the table a token's vector begins; -1: it is none. */
__device__ inline int64_t vector_of(float token, int vocab, int channels)
{
    return token >= 0 && token < (float)vocab ? (int64_t)token * channels : -1;
}

/* V: a pack of elements, or a single one; a thread takes n of them. */
template <class V, class E>
__global__ void embedding_rows(embedding_shape s, E *out, const float *tokens, const E *table,
                               const E *positions, int64_t n)
{
    constexpr int N = sizeof(V) / sizeof(E);
    const int per_row = s.channels / N;

    for (int64_t i = each_first(); i < n; i += each_stride()) {
        const int64_t row = i / per_row;
        const int64_t col = i % per_row * N;
        const int64_t from = vector_of(tokens[row], s.vocab, s.channels);
        const V position = *(const V *)(positions + row % s.time * s.channels + col);
        const V word = *(const V *)(table + (from < 0 ? 0 : from) + col);
        V sum;
        for (int k = 0; k < N; k++)
            ((E *)&sum)[k] =
                (E)(from < 0 ? NAN : (float)((const E *)&word)[k] + (float)((const E *)&position)[k]);
        *(V *)(out + row * s.channels + col) = sum;
    }
}

/* Behind the last of the rows with that token in `order`, which goes by tokens; the one at `first` is one of them. */
__device__ int64_t run_end(const float *tokens, const uint32_t *order, int64_t first, int64_t rows,
                           float token)
{
    int64_t low = first + 1; /* all before have it, ... */
    int64_t high = rows;     /* ... none from here on */

    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (tokens[order[middle]] == token)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Rows with one token stand side by side in `order`; who meets the first of them adds them all up. Of a frequent token there
 * are thousands: so many are read at a time, and added one behind the other. */
constexpr int READ_AHEAD = 16;

template <class E>
__global__ void embedding_table_gradient(embedding_shape s, float *dtable, const E *dout, const float *tokens,
                                         const uint32_t *order, int64_t rows)
{
    const int col = (int)(blockIdx.y * ROW_THREADS + threadIdx.x);
    const int64_t at = blockIdx.x;
    const float token = tokens[order[at]];
    const int64_t to = vector_of(token, s.vocab, s.channels);

    if ((at > 0 && tokens[order[at - 1]] == token) || to < 0 || col >= s.channels)
        return;
    float sum = dtable[to + col];
    const int64_t end = run_end(tokens, order, at, rows, token);
    int64_t i = at;
    for (; end - i >= READ_AHEAD; i += READ_AHEAD) {
        float read[READ_AHEAD];
        UNROLL
        for (int k = 0; k < READ_AHEAD; k++)
            read[k] = (float)(dout[(int64_t)order[i + k] * s.channels + col]);
        UNROLL
        for (int k = 0; k < READ_AHEAD; k++)
            sum += read[k];
    }
    for (; i < end; i++)
        sum += (float)(dout[(int64_t)order[i] * s.channels + col]);
    dtable[to + col] = sum;
}

template <class E>
__global__ void embedding_position_gradient(embedding_shape s, float *dpositions, const E *dout)
{
    const int64_t n = (int64_t)s.time * s.channels;

    for (int64_t i = each_first(); i < n; i += each_stride()) {
        float sum = (float)dout[i];
        for (int b = 1; b < s.batch; b++)
            sum += (float)(dout[b * n + i]);
        dpositions[i] = sum;
    }
}

template <class E>
void run_forward(struct cuda *c, const embedding_shape *s, void *out, const float *tokens, const void *table,
                 const void *positions)
{
    const int64_t n = (int64_t)s->batch * s->time * s->channels;
    const bool aligned = pack_aligned(out) && pack_aligned(table) && pack_aligned(positions);

    if (rows_packed<E>(s->channels, aligned))
        LAUNCH(c, blocks_for(n / pack<E>::N, EACH_THREADS), EACH_THREADS, (embedding_rows<pack<E>, E>), *s,
               (E *)out, tokens, (const E *)table, (const E *)positions, n / pack<E>::N);
    else
        LAUNCH(c, blocks_for(n, EACH_THREADS), EACH_THREADS, (embedding_rows<E, E>), *s, (E *)out, tokens,
               (const E *)table, (const E *)positions, n);
}

template <class E>
void run_backward(struct cuda *c, const embedding_shape *s, bool more, float *dtable, float *dpositions,
                  const void *dout, const float *tokens)
{
    const int64_t rows = (int64_t)s->batch * s->time;
    const dim3 grid((unsigned)rows, (unsigned)ceil_div(s->channels, ROW_THREADS));

    if (sort_bytes(rows) > CUDA_PARTS_BYTES) {
        cuda_note(c, cudaErrorInvalidConfiguration, "the embedding of that many tokens at a time");
        return;
    }
    const uint32_t *order = sort_rows(c, c->parts, tokens, rows, s->vocab);
    if (!more)
        c->ctx.ops->zero(&c->ctx, dtable, (size_t)s->vocab * (size_t)s->channels * sizeof(float));
    LAUNCH(c, grid, ROW_THREADS, embedding_table_gradient<E>, *s, dtable, (const E *)dout, tokens, order,
           rows);
    LAUNCH(c, blocks_for((int64_t)s->time * s->channels, EACH_THREADS), EACH_THREADS,
           embedding_position_gradient<E>, *s, dpositions, (const E *)dout);
}

} // namespace

void cuda_embedding_forward(struct kctx *ctx, const struct embedding_shape *s, void *out, const float *tokens,
                            const void *table, const void *positions)
{
    struct cuda *c = cuda_of(ctx);
    ELEMENT_CALL(c, run_forward, c, s, out, tokens, table, positions);
}

void cuda_embedding_backward(struct kctx *ctx, const struct embedding_shape *s, bool more, float *dtable,
                             float *dpositions, const void *dout, const float *tokens)
{
    struct cuda *c = cuda_of(ctx);
    ELEMENT_CALL(c, run_backward, c, s, more, dtable, dpositions, dout, tokens);
}
