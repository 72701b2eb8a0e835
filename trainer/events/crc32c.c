/* crc32c.c - compute CRC-32C (polynomial 0x82f63b78, reflected) by table or by SSE4.2. */
#include "trainer/events/crc32c.h"

#include <string.h>

/* A nibble at a time: records are short, and 16 entries need no generator. */
static const uint32_t nibbles[16] = {
    0x00000000U, 0x105ec76fU, 0x20bd8edeU, 0x30e349b1U, 0x417b1dbcU, 0x5125dad3U, 0x61c69362U, 0x7198540dU,
    0x82f63b78U, 0x92a8fc17U, 0xa24bb5a6U, 0xb21572c9U, 0xc38d26c4U, 0xd3d3e1abU, 0xe330a81aU, 0xf36e6f75U,
};

uint32_t crc32c_table(const void *bytes, size_t len)
{
    const uint8_t *p = bytes;
    uint32_t crc = UINT32_MAX;

    for (size_t i = 0; i < len; i++) {
        crc ^= p[i];
        crc = (crc >> 4) ^ nibbles[crc & 15U];
        crc = (crc >> 4) ^ nibbles[crc & 15U];
    }
    return ~crc;
}

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) static uint32_t crc32c_sse42(const uint8_t *p, size_t len)
{
    uint64_t crc = UINT32_MAX;

    for (; len >= 8; p += 8, len -= 8) {
        uint64_t word;
        memcpy(&word, p, sizeof(word));
        crc = __builtin_ia32_crc32di(crc, word);
    }
    for (; len; p++, len--)
        crc = __builtin_ia32_crc32qi((uint32_t)crc, *p);
    return ~(uint32_t)crc;
}
#endif

uint32_t crc32c(const void *bytes, size_t len)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("sse4.2"))
        return crc32c_sse42(bytes, len);
#endif
    return crc32c_table(bytes, len);
}

uint32_t crc32c_mask(uint32_t crc)
{
    return ((crc >> 15) | (crc << 17)) + 0xa282ead8U;
}
