/* dot_block.h - NX rows of x times NW of w; included once per size, with NX and NW defined (see gemm_block.h
 * for why); block_NX_NW. */
static void __attribute__((noinline)) BLOCK(NX, NW)(const struct isa_dot *d, int r0, int o0)
{
    const float *x = d->x + (ptrdiff_t)r0 * d->n;
    const float *w = d->w + (ptrdiff_t)o0 * d->n;
    const ptrdiff_t n = d->n;
    vec acc[NX][NW], wv[NW];
    UNROLL_ALL
    for (int k = 0; k < NX * NW; k++)
        acc[k / NW][k % NW] = vec_zero();
    ptrdiff_t i = 0;
    for (; i + VEC <= n; i += VEC) {
        UNROLL_ALL
        for (int o = 0; o < NW; o++)
            wv[o] = vec_load(w + o * n + i);
        UNROLL_ALL
        for (int r = 0; r < NX; r++) {
            vec xv = vec_load(x + r * n + i);
            UNROLL_ALL
            for (int o = 0; o < NW; o++)
                acc[r][o] = vec_fma(xv, wv[o], acc[r][o]);
        }
    }
    if (i < n) {
        int rest = (int)(n - i);
        UNROLL_ALL
        for (int o = 0; o < NW; o++)
            wv[o] = vec_load_n(w + o * n + i, rest);
        UNROLL_ALL
        for (int r = 0; r < NX; r++) {
            vec xv = vec_load_n(x + r * n + i, rest);
            UNROLL_ALL
            for (int o = 0; o < NW; o++)
                acc[r][o] = vec_fma(xv, wv[o], acc[r][o]);
        }
    }
    float *out = d->out + r0 * d->ld_out + o0;
    const float *bias = d->bias ? d->bias + o0 : NULL;
#if NW == 4
    UNROLL_ALL
    for (int r = 0; r < NX; r++)
        write_sums(d, &out[r * d->ld_out], bias, vec_sum4(acc[r][0], acc[r][1], acc[r][2], acc[r][3]));
#else
    UNROLL_ALL
    for (int k = 0; k < NX * NW; k++)
        write_sum(d, &out[k / NW * d->ld_out + k % NW], bias ? bias[k % NW] : 0, acc[k / NW][k % NW]);
#endif
}

#undef NX
#undef NW
