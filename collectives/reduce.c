/* reduce.c - element-wise sums with the processor's widest vectors, for the collectives of one pod.
 *
 * Each block is read from every source and written to every destination while its sum is in a register. The
 * sources of other ranks lie in other cores' caches: with few instructions between two loads, more of these slow
 * loads overlap. */
#include "collectives/reduce.h"
#include "collectives/collectives.h"

enum { WIDE_BYTES = 64 };

typedef float wide_f32 __attribute__((vector_size(WIDE_BYTES), aligned(4), may_alias));
typedef double wide_f64 __attribute__((vector_size(WIDE_BYTES), aligned(8), may_alias));
typedef float one_f32 __attribute__((may_alias));
typedef double one_f64 __attribute__((may_alias));
typedef unsigned char wide_bytes __attribute__((vector_size(WIDE_BYTES), aligned(1), may_alias));

struct job {
    void *const *dst;
    const void *const *src;
    int n_dst, n_src;
    size_t bytes;
};

#define INLINE __attribute__((always_inline)) static inline

/* Store the sum of all sources at byte offset `at`, one `type` wide, in all destinations. */
#define SUM_AT(type, add)                                                                                    \
    do {                                                                                                     \
        type sum = *(const type *)((const char *)j->src[0] + at);                                            \
        for (int s = 1; s < j->n_src; s++)                                                                   \
            sum add *(const type *)((const char *)j->src[s] + at);                                           \
        for (int d = 0; d < j->n_dst; d++)                                                                   \
            *(type *)((char *)j->dst[d] + at) = sum;                                                         \
    } while (0)

/* The same for two sources and two destinations, with their addresses in registers. */
INLINE size_t sum_pair(const struct job *j)
{
    char *a = j->dst[0], *b = j->dst[1];
    const char *x = j->src[0], *y = j->src[1];
    size_t at = 0;

    for (; at + WIDE_BYTES <= j->bytes; at += WIDE_BYTES) {
        wide_f32 sum = *(const wide_f32 *)(x + at) + *(const wide_f32 *)(y + at);
        *(wide_f32 *)(a + at) = sum;
        *(wide_f32 *)(b + at) = sum;
    }
    return at;
}

INLINE void sum_f32(const struct job *j)
{
    size_t at = j->n_src == 2 && j->n_dst == 2 ? sum_pair(j) : 0;

    for (; at + WIDE_BYTES <= j->bytes; at += WIDE_BYTES)
        SUM_AT(wide_f32, +=);
    for (; at < j->bytes; at += sizeof(one_f32))
        SUM_AT(one_f32, +=);
}

INLINE void sum_f64(const struct job *j)
{
    size_t at = 0;

    for (; at + WIDE_BYTES <= j->bytes; at += WIDE_BYTES)
        SUM_AT(wide_f64, +=);
    for (; at < j->bytes; at += sizeof(one_f64))
        SUM_AT(one_f64, +=);
}

INLINE void or_bytes(const struct job *j)
{
    size_t at = 0;

    for (; at + WIDE_BYTES <= j->bytes; at += WIDE_BYTES)
        SUM_AT(wide_bytes, |=);
    for (; at < j->bytes; at++)
        SUM_AT(unsigned char, |=);
}

INLINE void sum(enum reduce_type type, const struct job *j)
{
    switch (type) {
    case REDUCE_F32:
        sum_f32(j);
        break;
    case REDUCE_F64:
        sum_f64(j);
        break;
    case REDUCE_OR:
        or_bytes(j);
        break;
    }
}

static void sum_plain(enum reduce_type type, const struct job *j)
{
    sum(type, j);
}

#if defined(__x86_64__)
__attribute__((target("avx2"))) static void sum_avx2(enum reduce_type type, const struct job *j)
{
    sum(type, j);
}

__attribute__((target("avx512f"))) static void sum_avx512(enum reduce_type type, const struct job *j)
{
    sum(type, j);
}

bool reduce_isa_supported(enum reduce_isa isa)
{
    return isa == REDUCE_AVX512 ? __builtin_cpu_supports("avx512f") != 0
                                : isa == REDUCE_PLAIN || __builtin_cpu_supports("avx2") != 0;
}
#else
#define sum_avx2 sum_plain
#define sum_avx512 sum_plain

bool reduce_isa_supported(enum reduce_isa isa)
{
    return isa == REDUCE_PLAIN;
}
#endif

void reduce_vectors_by(enum reduce_isa isa, enum reduce_type type, void *const *dst, int n_dst,
                       const void *const *src, int n_src, size_t n)
{
    const struct job j = {dst, src, n_dst, n_src, n * reduce_size(type)};

    if (n_src == 1 && n_dst == 1 && dst[0] == src[0])
        return;
    switch (isa) {
    case REDUCE_AVX512:
        sum_avx512(type, &j);
        break;
    case REDUCE_AVX2:
        sum_avx2(type, &j);
        break;
    case REDUCE_PLAIN:
        sum_plain(type, &j);
        break;
    }
}

void reduce_vectors(enum reduce_type type, void *const *dst, int n_dst, const void *const *src, int n_src,
                    size_t n)
{
    enum reduce_isa isa = reduce_isa_supported(REDUCE_AVX512) ? REDUCE_AVX512
                          : reduce_isa_supported(REDUCE_AVX2) ? REDUCE_AVX2
                                                              : REDUCE_PLAIN;

    reduce_vectors_by(isa, type, dst, n_dst, src, n_src, n);
}

void collectives_part(size_t n, int rank, int world, size_t *begin, size_t *end)
{
    const size_t line = 16; /* floats of one cache line */
    size_t each = (n / line + (size_t)world - 1) / (size_t)world * line;

    if (each == 0)
        each = line;
    *begin = (size_t)rank * each < n ? (size_t)rank * each : n;
    *end = rank == world - 1 || *begin + each > n ? n : *begin + each;
}
