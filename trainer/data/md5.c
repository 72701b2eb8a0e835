/* md5.c - compute the MD5 checksum of bytes in memory (RFC 1321). */
#include "trainer/data/md5.h"
#include "common/endian.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { BLOCK = 64 };

/* The mixed bits and the index of the block's word of step i. */
static uint32_t mixed(int i, const uint32_t v[static 4], int *ret_word)
{
    switch (i / 16) {
    case 0:
        *ret_word = i;
        return (v[1] & v[2]) | (~v[1] & v[3]);
    case 1:
        *ret_word = (5 * i + 1) % 16;
        return (v[3] & v[1]) | (~v[3] & v[2]);
    case 2:
        *ret_word = (3 * i + 5) % 16;
        return v[1] ^ v[2] ^ v[3];
    default:
        *ret_word = 7 * i % 16;
        return v[2] ^ (v[1] | ~v[3]);
    }
}

static void take_block(uint32_t state[static 4], const uint8_t *block, const uint32_t sines[static 64])
{
    static const uint8_t turns[4][4] = {{7, 12, 17, 22}, {5, 9, 14, 20}, {4, 11, 16, 23}, {6, 10, 15, 21}};
    uint32_t v[4];

    memcpy(v, state, sizeof(v));
    for (int i = 0; i < 64; i++) {
        int which;
        uint32_t sum = v[0] + mixed(i, v, &which) + sines[i];
        sum += le_get32(block + 4 * which);
        int turn = turns[i / 16][i % 4];
        v[0] = v[3];
        v[3] = v[2];
        v[2] = v[1];
        v[1] += sum << turn | sum >> (32 - turn);
    }
    for (int i = 0; i < 4; i++)
        state[i] += v[i];
}

void md5_text(const void *bytes, size_t len, char out[static MD5_TEXT_BYTES])
{
    uint32_t state[4] = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476};
    const uint8_t *p = bytes;
    const size_t rest = len % BLOCK, tail_bytes = rest < BLOCK - 8 ? BLOCK : 2 * BLOCK;
    uint8_t tail[2 * BLOCK] = {0}; /* the last bytes, a 1, zeros, and the length in bits */
    uint32_t sines[64];

    /* The constants are the sines of 1, 2, ... 64 as the RFC defines them; a correctly rounded f64 has enough bits. */
    for (int i = 0; i < 64; i++)
        sines[i] = (uint32_t)(fabs(sin(i + 1.0)) * 4294967296.0);
    memcpy(tail, p + len - rest, rest);
    tail[rest] = 0x80;
    le_put(tail + tail_bytes - 8, (uint64_t)len * 8, 8);
    for (size_t at = 0; at + BLOCK <= len; at += BLOCK)
        take_block(state, p + at, sines);
    for (size_t at = 0; at < tail_bytes; at += BLOCK)
        take_block(state, tail + at, sines);
    for (int i = 0; i < 16; i++)
        snprintf(out + 2 * i, 3, "%02x", (uint8_t)(state[i / 4] >> (8 * (i % 4))));
}
