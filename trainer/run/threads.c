/* threads.c - how many threads a rank uses: OMP_NUM_THREADS, or its share of the usable CPUs. */
#include "trainer/run/threads.h"

#include "common/sv.h"

int threads_per_rank(const char *omp, int cpus, int local_world, int max)
{
    struct sv rest = sv_from(omp);
    struct sv first;
    int64_t n = cpus / (local_world > 0 ? local_world : 1);
    int64_t said;

    if (omp && sv_next(&rest, ',', &first) && sv_i64(sv_trim(first), 1, INT32_MAX, &said))
        n = said;
    if (n < 1)
        n = 1;
    return n < max ? (int)n : max;
}
