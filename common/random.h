/* random.h - a small random generator for jitter and test data (splitmix64, by Sebastiano Vigna), and random
 * bytes from the kernel for secrets. */
#ifndef TK_COMMON_RANDOM_H
#define TK_COMMON_RANDOM_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

/* The next number of the sequence with this state; any value begins a sequence. */
static inline uint64_t random_next(uint64_t *state)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15ULL);

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
}

/* At most 256 unpredictable bytes, for ids, keys and nonces. If the kernel gives none, the process ends. */
static inline void random_fill(void *bytes, size_t len)
{
    if (getrandom(bytes, len, 0) == (ssize_t)len)
        return;
    perror("getrandom");
    abort();
}

static inline uint64_t random_seed(void)
{
    uint64_t seed;

    random_fill(&seed, sizeof(seed));
    return seed;
}

#endif
