/* hash.h - FNV-1a, 64 bits, for tables and names; not for adversaries. Pure.
 *
 * Numerics: offset basis and prime of the authors' reference (Fowler, Noll, Vo).
 */
#ifndef TK_COMMON_HASH_H
#define TK_COMMON_HASH_H

#include <stddef.h>
#include <stdint.h>

#define HASH_FNV1A 0xcbf29ce484222325ULL /* where a hash begins */

/* `h` with `len` more bytes in it. */
static inline uint64_t hash_fnv1a(uint64_t h, const void *bytes, size_t len)
{
    const unsigned char *p = bytes;

    for (size_t i = 0; i < len; i++)
        h = (h ^ p[i]) * 0x100000001b3ULL;
    return h;
}

#endif
