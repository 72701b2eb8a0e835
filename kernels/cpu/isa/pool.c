/* pool.c - one output pixel of a pooling layer, over all channels. */
#include "kernels/cpu/isa/local.h"
#include "kernels/cpu/isa/vec.h"

void ISA_FN(pool_forward)(const struct isa_pool *p, float *out, uint8_t *argmax, const float *in)
{
    const struct isa_pool s = *p;
    for (int c = 0; c < s.c; c += VEC) {
        int n = s.c - c;
        vec best = vec_load_n(in + c, n);
        vec place = vec_tag(s.first);
        for (int y = 0; y < s.rows; y++) {
            const float *pixel = in + y * s.row + c;
            int i = s.first + y * s.window;
            for (int x = 0; x < s.cols; x++, i++, pixel += s.c) {
                vec v = vec_load_n(pixel, n);
                vec_mask m = vec_beats(v, best);
                best = vec_select(m, v, best);
                place = vec_select(m, vec_tag(i), place);
            }
        }
        vec_store_n(out + c, best, n);
        if (argmax)
            vec_store_tags_n(argmax + c, place, n);
    }
}

void ISA_FN(pool_backward)(const struct isa_pool *p, float *din, const float *dout, const uint8_t *argmax,
                           const float *out)
{
    const struct isa_pool s = *p;
    for (int c = 0; c < s.c; c += VEC) {
        int n = s.c - c;
        vec d = vec_load_n(dout + c, n);
        if (out)
            d = vec_select(vec_positive(vec_load_n(out + c, n)), d, vec_zero());
        vec place = vec_load_tags_n(argmax + c, n);
        for (int y = 0; y < s.rows; y++) {
            float *pixel = din + y * s.row + c;
            int i = s.first + y * s.window;
            for (int x = 0; x < s.cols; x++, i++, pixel += s.c) {
                vec part = vec_select(vec_tag_is(place, i), d, vec_zero());
                if (s.add)
                    part = vec_add(vec_load_n(pixel, n), part);
                vec_store_n(pixel, part, n);
            }
        }
    }
}

void ISA_FN(avgpool_forward)(const struct isa_pool *p, float *restrict out, const float *restrict in)
{
    const float n = (float)p->area;
    for (int c = 0; c < p->c; c++)
        out[c] = 0;
    for (int y = 0; y < p->rows; y++)
        for (int x = 0; x < p->cols; x++)
            for (int c = 0; c < p->c; c++)
                out[c] += in[y * p->row + (ptrdiff_t)x * p->c + c];
    for (int c = 0; c < p->c; c++)
        out[c] /= n;
}

void ISA_FN(avgpool_backward)(const struct isa_pool *p, float *restrict din, const float *restrict dout)
{
    const float n = (float)p->area;
    for (int y = 0; y < p->rows; y++)
        for (int x = 0; x < p->cols; x++)
            for (int c = 0; c < p->c; c++)
                din[y * p->row + (ptrdiff_t)x * p->c + c] += dout[c] / n;
}
