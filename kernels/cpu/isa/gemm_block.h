/* gemm_block.h - one block of ROWS rows by two vectors; included once per height, with ROWS defined; block_ROWS.
 *
 * A template rather than an inlined function with a row count: clang would unroll that by halves before it
 * learns the count, and the sums would live in memory. For the same reason the unrolled loops hold no branches.
 */
static void __attribute__((noinline)) ISA_JOIN(block, ROWS)(const struct isa_gemm *g, int r0)
{
    const int32_t *row = g->c_row + r0;
    float *const c = g->c;
    const float *a[ROWS];
    vec acc[ROWS][2];
    UNROLL_ALL
    for (int r = 0; r < ROWS; r++)
        a[r] = g->a + g->a_row[r0 + r];

    if (!g->accumulate) {
        vec b0 = g->bias ? vec_load(g->bias) : vec_zero();
        vec b1 = g->bias ? vec_load(g->bias + VEC) : vec_zero();
        UNROLL_ALL
        for (int r = 0; r < ROWS; r++) {
            acc[r][0] = b0;
            acc[r][1] = b1;
        }
    } else if (g->cols == VEC_PANEL) {
        UNROLL_ALL
        for (int r = 0; r < ROWS; r++) {
            acc[r][0] = vec_load(g->c + row[r]);
            acc[r][1] = vec_load(g->c + row[r] + VEC);
        }
    } else {
        UNROLL_ALL
        for (int r = 0; r < ROWS; r++) {
            acc[r][0] = vec_load_n(g->c + row[r], g->cols);
            acc[r][1] = vec_load_n(g->c + row[r] + VEC, g->cols - VEC);
        }
    }

    const float *b = g->b;
    const ptrdiff_t ldb = g->ldb;
    const ptrdiff_t step = g->a_step;
    for (int s = 0; s < g->n_seg; s++) {
        ptrdiff_t i = g->a_seg[s];
        for (int j = 0; j < g->seg_len; j++, i += step, b += ldb) {
            vec b0 = vec_load(b);
            vec b1 = vec_load(b + VEC);
            UNROLL_ALL
            for (int r = 0; r < ROWS; r++) {
                vec x = vec_set1(a[r][i]);
                acc[r][0] = vec_fma(x, b0, acc[r][0]);
                acc[r][1] = vec_fma(x, b1, acc[r][1]);
            }
        }
    }

    if (g->add) {
        UNROLL_ALL
        for (int r = 0; r < ROWS; r++) {
            acc[r][0] = vec_add(acc[r][0], vec_load_n(g->c + row[r], g->cols));
            acc[r][1] = vec_add(acc[r][1], vec_load_n(g->c + row[r] + VEC, g->cols - VEC));
        }
    }
    const vec least = vec_set1(g->relu ? 0 : -__builtin_inff());
    if (g->cols == VEC_PANEL) {
        UNROLL_ALL
        for (int r = 0; r < ROWS; r++) {
            vec_store(c + row[r], vec_at_least(acc[r][0], least));
            vec_store(c + row[r] + VEC, vec_at_least(acc[r][1], least));
        }
    } else {
        UNROLL_ALL
        for (int r = 0; r < ROWS; r++) {
            vec_store_n(c + row[r], vec_at_least(acc[r][0], least), g->cols);
            vec_store_n(c + row[r] + VEC, vec_at_least(acc[r][1], least), g->cols - VEC);
        }
    }
}

#undef ROWS
