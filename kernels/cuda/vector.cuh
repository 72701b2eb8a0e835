/* vector.cuh - 16 bytes at a time: what lies side by side is read and written in one piece where addresses allow.
 */
#ifndef TK_KERNELS_CUDA_VECTOR_CUH
#define TK_KERNELS_CUDA_VECTOR_CUH

#include "kernels/cuda/element.cuh"

namespace
{

/* COUNT neighbours in one access, where the address is a multiple of their size. */
template <class E, int COUNT> struct alignas(sizeof(E) * COUNT) piece {
    static constexpr int N = COUNT;
    E v[N];
};

template <class E, int N> __device__ inline piece<E, N> load_piece(const E *p)
{
    return *(const piece<E, N> *)p;
}

template <class E, int N> __device__ inline void store_piece(E *p, const piece<E, N> &x)
{
    *(piece<E, N> *)p = x;
}

/* The largest access. */
constexpr int PACK_BYTES = 16;
template <class E> using pack = piece<E, PACK_BYTES / (int)sizeof(E)>;

template <class E> __device__ inline pack<E> load_pack(const E *p)
{
    return load_piece<E, pack<E>::N>(p);
}

template <class E> __device__ inline void store_pack(E *p, const pack<E> &v)
{
    store_piece(p, v);
}

/* N neighbours in as few accesses as that takes. */
template <int N> __device__ inline piece<float, N> load_wide(const float *p)
{
    constexpr int WIDE = N < pack<float>::N ? N : pack<float>::N;
    piece<float, N> all;
    UNROLL
    for (int i = 0; i < N; i += WIDE) {
        const piece<float, WIDE> some = load_piece<float, WIDE>(p + i);
        UNROLL
        for (int j = 0; j < WIDE; j++)
            all.v[i + j] = some.v[j];
    }
    return all;
}

inline bool pack_aligned(const void *p)
{
    return (uintptr_t)p % PACK_BYTES == 0;
}

/* Packs of a row of n, of which `aligned` says whether there may be any. */
template <class E> inline bool rows_packed(int64_t n, bool aligned)
{
    return aligned && n % pack<E>::N == 0;
}

/* How n neighbours are taken: packs first, then what is left one by one. Without `aligned` there are no packs. */
struct pack_walk {
    int64_t packs, items; /* items: packs and single elements together, one per thread */
};

template <class E> inline pack_walk pack_walk_of(int64_t n, bool aligned)
{
    int64_t packs = aligned ? n / pack<E>::N : 0;
    return pack_walk{packs, packs + (n - packs * pack<E>::N)};
}

template <class E, class F, class... Packs> __device__ inline pack<E> map_packs(F f, const Packs &...in)
{
    pack<E> out;
    UNROLL
    for (int k = 0; k < pack<E>::N; k++)
        out.v[k] = (E)f((float)in.v[k]...);
    return out;
}

/* out[i] = f(in[i], ...), of which a thread writes only where it reads. */
template <class E, class F, class... In> __global__ void map_elements(F f, pack_walk walk, E *out, In... in)
{
    constexpr int N = pack<E>::N;

    for (int64_t i = each_first(); i < walk.items; i += each_stride()) {
        if (i >= walk.packs) {
            const int64_t at = walk.packs * (N - 1) + i;
            out[at] = (E)f((float)in[at]...);
            continue;
        }
        store_pack(out + i * N, map_packs<E>(f, load_pack(in + i * N)...));
    }
}

template <class E, class F, class... In> void map(struct cuda *c, size_t n, F f, E *out, const In *...in)
{
    const pack_walk walk = pack_walk_of<E>((int64_t)n, (pack_aligned(out) && ... && pack_aligned(in)));

    if (n)
        LAUNCH(c, blocks_for(walk.items, EACH_THREADS), EACH_THREADS, (map_elements<E, F, const In *...>), f,
               walk, out, in...);
}

} // namespace

#endif
