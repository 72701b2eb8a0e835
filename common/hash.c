/* hash.c - SipHash-2-4 with a seed of this process. */
#include "common/hash.h"

#include <string.h>

/* Set once, before the first table exists. */
static uint64_t seed[2];

void hash_seed(const uint64_t random[2])
{
    memcpy(seed, random, sizeof(seed));
}

static uint64_t turned(uint64_t x, int bits)
{
    return x << bits | x >> (64 - bits);
}

static void mix(uint64_t v[4], int rounds)
{
    for (int i = 0; i < rounds; i++) {
        v[0] += v[1];
        v[2] += v[3];
        v[1] = turned(v[1], 13) ^ v[0];
        v[3] = turned(v[3], 16) ^ v[2];
        v[2] += v[1];
        v[0] = turned(v[0], 32) + v[3];
        v[1] = turned(v[1], 17) ^ v[2];
        v[3] = turned(v[3], 21) ^ v[0];
        v[2] = turned(v[2], 32);
    }
}

static void mix_word(uint64_t v[4], uint64_t word)
{
    v[3] ^= word;
    mix(v, 2);
    v[0] ^= word;
}

uint64_t hash_seeded(uint64_t h, const void *bytes, size_t len)
{
    uint64_t v[4] = {seed[0] ^ 0x736f6d6570736575ULL, seed[1] ^ 0x646f72616e646f6dULL,
                     seed[0] ^ 0x6c7967656e657261ULL, seed[1] ^ 0x7465646279746573ULL};
    const char *p = bytes;
    uint64_t word = 0;

    mix_word(v, h);
    for (size_t rest = len; rest >= 8; rest -= 8, p += 8) {
        memcpy(&word, p, 8);
        mix_word(v, word);
    }
    word = 0;
    memcpy(&word, p, len % 8);
    mix_word(v, word | (uint64_t)(len + sizeof(h)) << 56);
    v[2] ^= 0xff;
    mix(v, 4);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}
