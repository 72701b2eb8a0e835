/* sha256.h - SHA-256 (FIPS 180-4) and HMAC with it (RFC 2104). Pure.
 *
 * For proofs of a few hundred bytes and downloads of some MB: plain C, about 0.2 GB/s. The launcher links no library that has them.
 */
#ifndef TK_COMMON_SHA256_H
#define TK_COMMON_SHA256_H

#include <stddef.h>
#include <stdint.h>

enum { SHA256_BYTES = 32, SHA256_BLOCK_BYTES = 64 };

struct sha256 {
    uint32_t h[8];
    uint64_t len; /* bytes so far */
    uint8_t block[SHA256_BLOCK_BYTES];
};

void sha256_begin(struct sha256 *s);
void sha256_add(struct sha256 *s, const void *bytes, size_t len);
/* The hash of all bytes added. Wipes *s. */
void sha256_end(struct sha256 *s, uint8_t out[static SHA256_BYTES]);

/* Add the message to `inner`. */
struct hmac {
    struct sha256 inner, outer;
};

/* A key of SHA256_BLOCK_BYTES at most. */
void hmac_begin(struct hmac *h, const void *key, size_t len);
void hmac_end(struct hmac *h, uint8_t out[static SHA256_BYTES]);

#endif
