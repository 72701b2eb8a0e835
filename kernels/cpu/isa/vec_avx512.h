/* vec_avx512.h - vec.h for AVX-512 (F, BW, DQ, VL). */
#ifndef TK_KERNELS_ISA_VEC_AVX512_H
#define TK_KERNELS_ISA_VEC_AVX512_H

#include <immintrin.h>

enum { VEC = 16, VEC_ROWS = 12 };

typedef __m512 vec;
typedef __mmask16 vec_mask;

static inline vec vec_set1(float x)
{
    return _mm512_set1_ps(x);
}
static inline vec_mask vec_first(int n)
{
    return _cvtu32_mask16(n <= 0 ? 0U : n >= VEC ? 0xFFFFU : (1U << n) - 1U);
}
static inline vec vec_load_n(const float *p, int n)
{
    return _mm512_maskz_loadu_ps(vec_first(n), p);
}
static inline void vec_store_n(float *p, vec v, int n)
{
    _mm512_mask_storeu_ps(p, vec_first(n), v);
}
static inline vec vec_fma(vec a, vec b, vec c)
{
    return _mm512_fmadd_ps(a, b, c);
}
static inline vec vec_at_least(vec a, vec least)
{
    return _mm512_max_ps(least, a); /* of NaN and a number it gives the second */
}
static inline vec_mask vec_positive(vec a)
{
    return _mm512_cmp_ps_mask(a, _mm512_setzero_ps(), _CMP_GT_OQ);
}
/* a > b, or a is NaN */
static inline vec_mask vec_beats(vec a, vec b)
{
    return _kor_mask16(_mm512_cmp_ps_mask(a, b, _CMP_GT_OQ), _mm512_cmp_ps_mask(a, a, _CMP_UNORD_Q));
}
/* m ? a : b */
static inline vec vec_select(vec_mask m, vec a, vec b)
{
    return _mm512_mask_blend_ps(m, b, a);
}
/* Small whole numbers travel as floats' bits; only these two know. */
static inline vec vec_tag(int tag)
{
    return _mm512_castsi512_ps(_mm512_set1_epi32(tag));
}
static inline void vec_store_tags_n(uint8_t *p, vec tags, int n)
{
    _mm512_mask_cvtepi32_storeu_epi8(p, vec_first(n), _mm512_castps_si512(tags));
}
static inline vec vec_load_tags_n(const uint8_t *p, int n)
{
    return _mm512_castsi512_ps(_mm512_cvtepu8_epi32(_mm_maskz_loadu_epi8(vec_first(n), p)));
}
static inline vec_mask vec_tag_is(vec tags, int tag)
{
    return _mm512_cmpeq_epi32_mask(_mm512_castps_si512(tags), _mm512_set1_epi32(tag));
}
static inline float vec_sum(vec v)
{
    __m256 h = _mm256_add_ps(_mm512_castps512_ps256(v), _mm512_extractf32x8_ps(v, 1));
    __m128 s = _mm_add_ps(_mm256_castps256_ps128(h), _mm256_extractf128_ps(h, 1));
    s = _mm_add_ps(s, _mm_movehl_ps(s, s));
    return _mm_cvtss_f32(_mm_add_ss(s, _mm_shuffle_ps(s, s, 1)));
}
static inline vec vec_halves_sum(vec a, vec b) /* a's halves added, then b's */
{
    return _mm512_add_ps(_mm512_shuffle_f32x4(a, b, 0x44), _mm512_shuffle_f32x4(a, b, 0xee));
}
static inline vec_quad vec_sum4(vec a, vec b, vec c, vec d)
{
    vec ab = vec_halves_sum(a, b);
    vec cd = vec_halves_sum(c, d);
    vec s = _mm512_add_ps(_mm512_shuffle_f32x4(ab, cd, 0x88), _mm512_shuffle_f32x4(ab, cd, 0xdd));
    s = _mm512_add_ps(s, _mm512_permute_ps(s, 0x4e));
    s = _mm512_add_ps(s, _mm512_permute_ps(s, 0xb1));
    return (vec_quad)_mm512_castps512_ps128(_mm512_maskz_compress_ps(_cvtu32_mask16(0x1111), s));
}

#endif
