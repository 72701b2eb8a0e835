/* jobkey.c - parse a job's key; compute proofs and nonces. */
#include "common/jobkey.h"
#include "common/endian.h"
#include "common/sv.h"

#include <string.h>

static int digit(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

int jobkey_read(const char *text, struct jobkey *ret, struct err *err)
{
    const struct sv hex = sv_trim(sv_from(text ? text : ""));
    struct jobkey key = {.has = hex.len != 0};

    for (size_t i = 0; i < hex.len; i++) {
        const int n = digit(hex.p[i]);
        if (n < 0 || hex.len != 2 * JOBKEY_BYTES)
            return err_set(err, ERR_INVALID, "the key of the job: expected %d hexadecimal digits",
                           2 * JOBKEY_BYTES);
        key.bytes[i / 2] = (uint8_t)(key.bytes[i / 2] << 4 | n);
    }
    *ret = key;
    explicit_bzero(&key, sizeof(key));
    return 0;
}

static void add_number(struct sha256 *s, uint64_t number, size_t bytes)
{
    uint8_t little[8];

    le_put(little, number, bytes);
    sha256_add(s, little, bytes);
}

void jobkey_prove(const struct jobkey *key, const char *purpose, const struct jobkey_field *fields, int n,
                  uint8_t proof[static JOBKEY_PROOF_BYTES])
{
    struct hmac h;

    memset(proof, 0, JOBKEY_PROOF_BYTES);
    if (!key->has)
        return;
    hmac_begin(&h, key->bytes, sizeof(key->bytes));
    sha256_add(&h.inner, purpose, strlen(purpose) + 1);
    for (int i = 0; i < n; i++) {
        add_number(&h.inner, fields[i].len, 4);
        sha256_add(&h.inner, fields[i].bytes, fields[i].len);
    }
    hmac_end(&h, proof);
}

void jobkey_nonce(const struct jobkey *key, const uint8_t seed[static JOBKEY_NONCE_BYTES], uint64_t number,
                  uint8_t nonce[static JOBKEY_NONCE_BYTES])
{
    struct sha256 s;

    memset(nonce, 0, JOBKEY_NONCE_BYTES);
    if (!key->has)
        return;
    sha256_begin(&s);
    sha256_add(&s, seed, JOBKEY_NONCE_BYTES);
    add_number(&s, number, sizeof(number));
    sha256_end(&s, nonce);
}
