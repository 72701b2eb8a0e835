/* part.c - collectives_part: split a vector into one part per rank. */
#include "collectives/collectives.h"

void collectives_part(size_t n, int rank, int world, size_t *begin, size_t *end)
{
    const size_t line = 16; /* floats of one cache line */
    size_t each = (n / line + (size_t)world - 1) / (size_t)world * line;

    if (each == 0)
        each = line;
    *begin = (size_t)rank * each < n ? (size_t)rank * each : n;
    *end = rank == world - 1 || *begin + each > n ? n : *begin + each;
}
