/* jobkey.h - the key of a job, and the proofs (HMACs) by which two of its processes authenticate each other.
 * Pure.
 *
 * rendezvous/PROTOCOL.md, "The key of a job", describes the exchange.
 */
#ifndef TK_COMMON_JOBKEY_H
#define TK_COMMON_JOBKEY_H

#include "common/err.h"
#include "common/sha256.h"

enum { JOBKEY_BYTES = 32, JOBKEY_NONCE_BYTES = 32, JOBKEY_PROOF_BYTES = SHA256_BYTES };

struct jobkey {
    bool has; /* false: no key; the bytes are 0 */
    uint8_t bytes[JOBKEY_BYTES];
};

/* Parse `text`: 64 hexadecimal digits; NULL or blank: no key. ERR_INVALID: other text; the message does not
 * quote it. */
int jobkey_read(const char *text, struct jobkey *ret, struct err *err);

/* Bytes that a proof covers. */
struct jobkey_field {
    const void *bytes;
    size_t len;
};

/* The proof (HMAC) over n fields for a purpose; without a key: zeros. */
void jobkey_prove(const struct jobkey *key, const char *purpose, const struct jobkey_field *fields, int n,
                  uint8_t proof[static JOBKEY_PROOF_BYTES]);

/* The nonce for `number`, which a process uses once, and its random seed; without a key: zeros. */
void jobkey_nonce(const struct jobkey *key, const uint8_t seed[static JOBKEY_NONCE_BYTES], uint64_t number,
                  uint8_t nonce[static JOBKEY_NONCE_BYTES]);

#endif
