/* jobkey.h - the key of a job, and the proofs by which two of its processes show each other that they have it. Pure.
 *
 * rendezvous/PROTOCOL.md, "The key of a job", says who proves what to whom.
 */
#ifndef TK_COMMON_JOBKEY_H
#define TK_COMMON_JOBKEY_H

#include "common/err.h"
#include "common/sha256.h"

enum { JOBKEY_BYTES = 32, JOBKEY_NONCE_BYTES = 32, JOBKEY_PROOF_BYTES = SHA256_BYTES };

struct jobkey {
    bool has; /* false: there is none, and all else is 0 */
    uint8_t bytes[JOBKEY_BYTES];
};

/* The key that `text` is, 64 hexadecimal digits; NULL or blank: none. ERR_INVALID: it is something else, which the message does
 * not repeat. */
int jobkey_read(const char *text, struct jobkey *ret, struct err *err);

/* Bytes that a proof covers. */
struct jobkey_field {
    const void *bytes;
    size_t len;
};

/* The proof of n fields for a purpose; without a key zeros. */
void jobkey_prove(const struct jobkey *key, const char *purpose, const struct jobkey_field *fields, int n,
                  uint8_t proof[static JOBKEY_PROOF_BYTES]);

/* The nonce of number `number`, which a process uses once, of a process with this random seed; without a key zeros. */
void jobkey_nonce(const struct jobkey *key, const uint8_t seed[static JOBKEY_NONCE_BYTES], uint64_t number,
                  uint8_t nonce[static JOBKEY_NONCE_BYTES]);

#endif
