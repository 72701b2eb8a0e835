/* hash.h - FNV-1a, the 64-bit hash of byte strings, for tables and names. Not for input chosen to collide.
 * Pure.
 *
 * Source:    offset basis and prime from the authors' reference (Fowler, Noll, Vo).
 */
#ifndef TK_COMMON_HASH_H
#define TK_COMMON_HASH_H

#include <stddef.h>
#include <stdint.h>

#define HASH_FNV1A 0xcbf29ce484222325ULL /* the offset basis: initial value of a hash */

/* Continue the hash `h` with `len` more bytes. */
static inline uint64_t hash_fnv1a(uint64_t h, const void *bytes, size_t len)
{
    const unsigned char *p = bytes;

    for (size_t i = 0; i < len; i++)
        h = (h ^ p[i]) * 0x100000001b3ULL;
    return h;
}

#endif
