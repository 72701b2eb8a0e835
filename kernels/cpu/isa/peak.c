/* peak.c - measure a core's peak: independent fused multiply-adds in all registers, for kernels-bench. */
#include "kernels/cpu/isa/local.h"
#include "kernels/cpu/isa/vec.h"

enum { CHAINS = 2 * VEC_ROWS };

double ISA_FN(peak)(int64_t rounds, float *sink)
{
    vec sum[CHAINS];
    vec x = vec_set1(0.999F);
    vec y = vec_set1(*sink);
    UNROLL_ALL
    for (int i = 0; i < CHAINS; i++)
        sum[i] = vec_set1((float)i);
    for (int64_t r = 0; r < rounds; r++) {
        UNROLL_ALL
        for (int i = 0; i < CHAINS; i++)
            sum[i] = vec_fma(sum[i], x, y);
    }
    for (int i = 1; i < CHAINS; i++)
        sum[0] = vec_add(sum[0], sum[i]);
    *sink = vec_sum(sum[0]);
    return 2.0 * VEC * CHAINS * (double)rounds;
}
