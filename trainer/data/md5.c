/* md5.c - compute the MD5 checksum of a byte stream (RFC 1321). */
#include "trainer/data/md5.h"
#include "common/endian.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

void md5_begin(struct md5 *m)
{
    *m = (struct md5){.state = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476}};
}

/* Which bits are mixed, and which word of the block is taken, in step i. */
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

static void take_block(struct md5 *m, const uint8_t *block, const uint32_t sines[static 64])
{
    static const uint8_t turns[4][4] = {{7, 12, 17, 22}, {5, 9, 14, 20}, {4, 11, 16, 23}, {6, 10, 15, 21}};
    uint32_t v[4];

    memcpy(v, m->state, sizeof(v));
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
        m->state[i] += v[i];
}

/* The constants are the sines of 1, 2, ... 64 as the RFC defines them; a correctly rounded f64 has enough bits. */
static void make_sines(uint32_t out[static 64])
{
    for (int i = 0; i < 64; i++)
        out[i] = (uint32_t)(fabs(sin(i + 1.0)) * 4294967296.0);
}

void md5_add(struct md5 *m, const void *bytes, size_t len)
{
    const uint8_t *p = bytes;
    uint32_t sines[64];

    make_sines(sines);
    while (len) {
        size_t at = m->len % sizeof(m->block);
        size_t n = sizeof(m->block) - at < len ? sizeof(m->block) - at : len;
        memcpy(m->block + at, p, n);
        m->len += n;
        p += n;
        len -= n;
        if (at + n == sizeof(m->block))
            take_block(m, m->block, sines);
    }
}

void md5_text(struct md5 *m, char out[static MD5_TEXT_BYTES])
{
    const uint64_t bits = m->len * 8;
    uint8_t tail[72] = {0x80};
    size_t pad = (m->len % 64 < 56 ? 56 : 120) - m->len % 64;

    le_put(tail + pad, bits, 8);
    md5_add(m, tail, pad + 8);
    for (int i = 0; i < 16; i++)
        snprintf(out + 2 * i, 3, "%02x", (uint8_t)(m->state[i / 4] >> (8 * (i % 4))));
}
