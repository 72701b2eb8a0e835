/* vec_avx2.h - vec.h for AVX2 with FMA. */
#ifndef TK_KERNELS_ISA_VEC_AVX2_H
#define TK_KERNELS_ISA_VEC_AVX2_H

#include <immintrin.h>

enum { VEC = 8, VEC_ROWS = 6 };

typedef __m256 vec;
typedef __m256 vec_mask;

static inline vec vec_set1(float x)
{
    return _mm256_set1_ps(x);
}
static inline __m256i vec_first(int n)
{
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
static inline vec vec_load_n(const float *p, int n)
{
    return _mm256_maskload_ps(p, vec_first(n));
}
static inline void vec_store_n(float *p, vec v, int n)
{
    _mm256_maskstore_ps(p, vec_first(n), v);
}
static inline vec vec_fma(vec a, vec b, vec c)
{
    return _mm256_fmadd_ps(a, b, c);
}
static inline vec vec_at_least(vec a, vec least)
{
    return _mm256_max_ps(least, a); /* of NaN and a number it gives the second */
}
static inline vec_mask vec_positive(vec a)
{
    return _mm256_cmp_ps(a, _mm256_setzero_ps(), _CMP_GT_OQ);
}
/* a > b, or a is NaN */
static inline vec_mask vec_beats(vec a, vec b)
{
    return _mm256_or_ps(_mm256_cmp_ps(a, b, _CMP_GT_OQ), _mm256_cmp_ps(a, a, _CMP_UNORD_Q));
}
/* m ? a : b */
static inline vec vec_select(vec_mask m, vec a, vec b)
{
    return _mm256_blendv_ps(b, a, m);
}
/* Small whole numbers travel as floats' bits; only these two know. */
static inline vec vec_tag(int tag)
{
    return _mm256_castsi256_ps(_mm256_set1_epi32(tag));
}
static inline void vec_store_tags_n(uint8_t *p, vec tags, int n)
{
    int32_t lanes[VEC];
    _mm256_storeu_si256((__m256i *)lanes, _mm256_castps_si256(tags));
    for (int i = 0; i < VEC && i < n; i++)
        p[i] = (uint8_t)lanes[i];
}
static inline vec vec_load_tags_n(const uint8_t *p, int n)
{
    uint8_t bytes[VEC] = {0};
    memcpy(bytes, p, (size_t)(n < VEC ? n : VEC));
    return _mm256_castsi256_ps(_mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)bytes)));
}
static inline vec_mask vec_tag_is(vec tags, int tag)
{
    return _mm256_castsi256_ps(_mm256_cmpeq_epi32(_mm256_castps_si256(tags), _mm256_set1_epi32(tag)));
}
static inline float vec_sum(vec v)
{
    __m128 s = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    s = _mm_add_ps(s, _mm_movehl_ps(s, s));
    return _mm_cvtss_f32(_mm_add_ss(s, _mm_shuffle_ps(s, s, 1)));
}
static inline vec vec_halves_sum(vec a, vec b) /* a's halves added, then b's */
{
    return _mm256_add_ps(_mm256_permute2f128_ps(a, b, 0x20), _mm256_permute2f128_ps(a, b, 0x31));
}
static inline vec_quad vec_sum4(vec a, vec b, vec c, vec d)
{
    vec ac = vec_halves_sum(a, c);
    vec bd = vec_halves_sum(b, d);
    vec s = _mm256_add_ps(_mm256_unpacklo_ps(ac, bd), _mm256_unpackhi_ps(ac, bd)); /* a b a b, c d c d */
    s = _mm256_add_ps(s, _mm256_permute_ps(s, 0x4e));
    return (vec_quad)_mm_movelh_ps(_mm256_castps256_ps128(s), _mm256_extractf128_ps(s, 1));
}

#endif
