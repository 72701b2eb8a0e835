/* pool.c - one output pixel of a max-pool, all channels. */
#include "kernels/cpu/isa/local.h"
#include "kernels/cpu/isa/vec.h"

void ISA_FN(pool_forward)(const struct isa_pool *p, float *out, uint8_t *argmax, const float *in)
{
    for (int c = 0; c < p->c; c += VEC) {
        int n = p->c - c;
        vec best = vec_load_n(in + c, n);
        vec place = vec_tag(0);
        for (int y = 0, i = 0; y < p->window; y++) {
            const float *pixel = in + y * p->row + c;
            for (int x = 0; x < p->window; x++, i++, pixel += p->c) {
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
    for (int c = 0; c < p->c; c += VEC) {
        int n = p->c - c;
        vec d = vec_load_n(dout + c, n);
        if (out)
            d = vec_select(vec_positive(vec_load_n(out + c, n)), d, vec_zero());
        vec place = vec_load_tags_n(argmax + c, n);
        for (int y = 0, i = 0; y < p->window; y++) {
            float *pixel = din + y * p->row + c;
            for (int x = 0; x < p->window; x++, i++, pixel += p->c) {
                vec part = vec_select(vec_tag_is(place, i), d, vec_zero());
                if (p->add)
                    part = vec_add(vec_load_n(pixel, n), part);
                vec_store_n(pixel, part, n);
            }
        }
    }
}
