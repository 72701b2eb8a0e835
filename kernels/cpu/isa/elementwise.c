/* elementwise.c - vector loops over flat buffers: ReLU and its gradient, sums of columns, sums. */
#include "kernels/cpu/isa/local.h"
#include "kernels/cpu/isa/vec.h"

/* What is left of n from i, as vec_load_n wants it. */
static inline int rest(size_t n, size_t i)
{
    return n - i < VEC ? (int)(n - i) : VEC;
}

void ISA_FN(relu)(float *out, const float *in, size_t n)
{
    size_t i = 0;
    for (; i + VEC <= n; i += VEC)
        vec_store(out + i, vec_at_least(vec_load(in + i), vec_zero()));
    if (i < n)
        vec_store_n(out + i, vec_at_least(vec_load_n(in + i, rest(n, i)), vec_zero()), rest(n, i));
}

void ISA_FN(relu_mask)(float *din, const float *dout, const float *out, size_t n)
{
    size_t i = 0;
    for (; i + VEC <= n; i += VEC)
        vec_store(din + i, vec_select(vec_positive(vec_load(out + i)), vec_load(dout + i), vec_zero()));
    if (i < n) {
        vec_mask m = vec_positive(vec_load_n(out + i, rest(n, i)));
        vec_store_n(din + i, vec_select(m, vec_load_n(dout + i, rest(n, i)), vec_zero()), rest(n, i));
    }
}

void ISA_FN(col_sum)(float *sum, const float *x, ptrdiff_t ld, int rows, int cols)
{
    int c = 0;
    for (; c + 2 * VEC <= cols; c += 2 * VEC) {
        vec s0 = vec_zero();
        vec s1 = vec_zero();
        for (ptrdiff_t r = 0; r < rows; r++) {
            s0 = vec_add(s0, vec_load(x + r * ld + c));
            s1 = vec_add(s1, vec_load(x + r * ld + c + VEC));
        }
        vec_store(sum + c, vec_add(vec_load(sum + c), s0));
        vec_store(sum + c + VEC, vec_add(vec_load(sum + c + VEC), s1));
    }
    for (; c < cols; c += VEC) {
        vec s = vec_zero();
        for (ptrdiff_t r = 0; r < rows; r++)
            s = vec_add(s, vec_load_n(x + r * ld + c, cols - c));
        vec_store_n(sum + c, vec_add(vec_load_n(sum + c, cols - c), s), cols - c);
    }
}

void ISA_FN(add)(float *out, const float *a, const float *b, size_t len)
{
    for (size_t i = 0; i < len; i += VEC) {
        int n = rest(len, i);
        if (n == VEC)
            vec_store(out + i, vec_add(vec_load(a + i), vec_load(b + i)));
        else
            vec_store_n(out + i, vec_add(vec_load_n(a + i, n), vec_load_n(b + i, n)), n);
    }
}
