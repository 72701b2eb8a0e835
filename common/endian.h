/* endian.h - read and write little-endian integers of 1 to 8 bytes at any address, for file formats and wire
 * protocols. Pure. */
#ifndef TK_COMMON_ENDIAN_H
#define TK_COMMON_ENDIAN_H

#include <stddef.h>
#include <stdint.h>

static inline uint64_t le_get(const void *p, size_t bytes)
{
    const uint8_t *at = (const uint8_t *)p;
    uint64_t v = 0;

    for (size_t i = 0; i < bytes; i++)
        v |= (uint64_t)at[i] << (8 * i);
    return v;
}

/* Write the low `bytes` bytes of v. */
static inline void le_put(void *p, uint64_t v, size_t bytes)
{
    uint8_t *at = (uint8_t *)p;

    for (size_t i = 0; i < bytes; i++)
        at[i] = (uint8_t)(v >> (8 * i));
}

static inline uint32_t le_get32(const void *p)
{
    return (uint32_t)le_get(p, 4);
}

#endif
