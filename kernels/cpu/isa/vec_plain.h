/* vec_plain.h - vec.h with the compilers' own vectors of 16 bytes: any processor. */
#ifndef TK_KERNELS_ISA_VEC_PLAIN_H
#define TK_KERNELS_ISA_VEC_PLAIN_H

enum { VEC = 4, VEC_ROWS = 6 };

typedef float vec __attribute__((vector_size(16)));
typedef int32_t vec_mask __attribute__((vector_size(16)));

static inline vec vec_set1(float x)
{
    return (vec){x, x, x, x};
}
static inline vec vec_load_n(const float *p, int n)
{
    vec v = {0};
    for (int i = 0; i < VEC && i < n; i++)
        v[i] = p[i];
    return v;
}
static inline void vec_store_n(float *p, vec v, int n)
{
    for (int i = 0; i < VEC && i < n; i++)
        p[i] = v[i];
}
static inline vec vec_fma(vec a, vec b, vec c)
{
    return c + a * b;
}
/* m ? a : b */
static inline vec vec_select(vec_mask m, vec a, vec b)
{
    return (vec)((m & (vec_mask)a) | (~m & (vec_mask)b));
}
static inline vec vec_at_least(vec a, vec least)
{
    return vec_select((vec_mask)(a < least), least, a);
}
static inline vec_mask vec_positive(vec a)
{
    return (vec_mask)(a > (vec){0});
}
/* a > b, or a is NaN */
static inline vec_mask vec_beats(vec a, vec b)
{
    return (vec_mask)(a > b) | ~(vec_mask)(a == a);
}
/* Small whole numbers travel as floats' bits; only these two know. */
static inline vec vec_tag(int tag)
{
    return (vec)(vec_mask){tag, tag, tag, tag};
}
static inline void vec_store_tags_n(uint8_t *p, vec tags, int n)
{
    vec_mask t = (vec_mask)tags;
    for (int i = 0; i < VEC && i < n; i++)
        p[i] = (uint8_t)t[i];
}
static inline vec vec_load_tags_n(const uint8_t *p, int n)
{
    vec_mask t = {0, 0, 0, 0};
    for (int i = 0; i < VEC && i < n; i++)
        t[i] = p[i];
    return (vec)t;
}
static inline vec_mask vec_tag_is(vec tags, int tag)
{
    return (vec_mask)((vec_mask)tags == (vec_mask){tag, tag, tag, tag});
}
static inline float vec_sum(vec v)
{
    return (v[0] + v[2]) + (v[1] + v[3]);
}
static inline vec_quad vec_sum4(vec a, vec b, vec c, vec d)
{
    return (vec_quad){vec_sum(a), vec_sum(b), vec_sum(c), vec_sum(d)};
}

#endif
