/* seed.h - the seed of a randomized test: the same in each run, unless the environment variable TK_SEED has another. It is
 * printed, so that a failure can be had again.
 */
#ifndef TK_TESTS_UNIT_SEED_H
#define TK_TESTS_UNIT_SEED_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static inline uint64_t seed_of_run(void)
{
    const char *text = getenv("TK_SEED");
    uint64_t seed = text ? strtoull(text, NULL, 10) : 20261123;

    printf("seed %llu (TK_SEED)\n", (unsigned long long)seed);
    fflush(stdout);
    return seed;
}

#endif
