/* random.h - a small random generator for jitter and test data (splitmix64, by Sebastiano Vigna). Not for secrets:
 * those come from getrandom.
 */
#ifndef TK_COMMON_RANDOM_H
#define TK_COMMON_RANDOM_H

#include <stdint.h>

/* The next number of the sequence that *state stands in; any value begins one. */
static inline uint64_t random_next(uint64_t *state)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15ULL);

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
}

#endif
