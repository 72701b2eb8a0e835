/* pack.c - transpose a panel of a matrix, so that its rows become the panel's columns. */
#include "kernels/cpu/isa/local.h"
#include "kernels/cpu/isa/vec.h"

enum { SIDE = 8 };

/* SIDE x SIDE at a time: what is read and what is written both stay in few cache lines. */
static void square(float *restrict to, const float *restrict from, ptrdiff_t row)
{
    float v[SIDE][SIDE];

    for (int n = 0; n < SIDE; n++)
        for (int k = 0; k < SIDE; k++)
            v[n][k] = from[n * row + k];
    for (int k = 0; k < SIDE; k++)
        for (int n = 0; n < SIDE; n++)
            to[k * VEC_PANEL + n] = v[n][k];
}

void ISA_FN(pack_across)(float *to, const float *from, ptrdiff_t row, int n, int steps)
{
    int whole_n = n / SIDE * SIDE;
    int whole_k = steps / SIDE * SIDE;

    for (int k = 0; k < whole_k; k += SIDE)
        for (int c = 0; c < whole_n; c += SIDE)
            square(to + (ptrdiff_t)k * VEC_PANEL + c, from + c * row + k, row);
    for (int k = 0; k < steps; k++)
        for (int c = k < whole_k ? whole_n : 0; c < VEC_PANEL; c++)
            to[(ptrdiff_t)k * VEC_PANEL + c] = c < n ? from[c * row + k] : 0;
}
