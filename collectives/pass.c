/* pass.c - nonces and proofs of the watch and of the links. */
#include "collectives/pass.h"
#include "collectives/collectives.h"
#include "common/secret.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

struct pass pass_of(const struct collectives_config *cfg)
{
    return (struct pass){cfg->run_id ? cfg->run_id : "", cfg->key};
}

void pass_nonce(uint8_t nonce[static JOBKEY_NONCE_BYTES])
{
    if (getrandom(nonce, JOBKEY_NONCE_BYTES, 0) != JOBKEY_NONCE_BYTES)
        abort(); /* so few bytes come at once; it is missing where watch_server_start, which says so, has failed before */
}

void pass_prove(const struct pass *p, enum pass_purpose purpose, const struct pass_talk *t,
                uint8_t proof[static JOBKEY_PROOF_BYTES])
{
    static const char *const purposes[] = {"torchkeeper watch 1: watch", "torchkeeper watch 1: rank",
                                           "torchkeeper link 1"};
    const struct jobkey_field fields[] = {
        {p->run_id, strlen(p->run_id)}, {t->said, t->len}, {t->nonce, t->nonce_len}};

    jobkey_prove(&p->key, purposes[purpose], fields, ARRAY_LEN(fields), proof);
}

bool pass_holds(const struct pass *p, enum pass_purpose purpose, const struct pass_talk *t,
                const uint8_t proof[static JOBKEY_PROOF_BYTES])
{
    uint8_t want[JOBKEY_PROOF_BYTES];

    pass_prove(p, purpose, t, want);
    return secret_equal(want, proof, sizeof(want));
}
