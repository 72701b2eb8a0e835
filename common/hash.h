/* hash.h - two 64-bit hashes of byte strings: FNV-1a, which is the same everywhere and may be stored, and
 * SipHash-2-4 with a seed of this process, for tables whose keys an attacker may choose. Pure.
 *
 * Source:    offset basis and prime from the authors' reference (Fowler, Noll, Vo); SipHash by Aumasson and
 *            Bernstein.
 */
#ifndef TK_COMMON_HASH_H
#define TK_COMMON_HASH_H

#include <stddef.h>
#include <stdint.h>

#define HASH_FNV1A 0xcbf29ce484222325ULL /* the offset basis: initial value of a hash */

/* Continue the hash `h` with `len` more bytes. Not for input chosen to collide. */
static inline uint64_t hash_fnv1a(uint64_t h, const void *bytes, size_t len)
{
    const unsigned char *p = bytes;

    for (size_t i = 0; i < len; i++)
        h = (h ^ p[i]) * 0x100000001b3ULL;
    return h;
}

/* The hash of `h` and the bytes. Without the seed nobody can choose bytes that collide. */
uint64_t hash_seeded(uint64_t h, const void *bytes, size_t len);

/* For the whole process: main calls it with random numbers before the first table exists. Without it the seed
 * is 0, so that tests are reproducible. */
void hash_seed(const uint64_t random[2]);

#endif
