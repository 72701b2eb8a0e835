/* pass.c - compute and check the proofs of the watch and of the links. */
#include "collectives/pass.h"
#include "collectives/collectives.h"
#include "common/secret.h"

#include <stdio.h>
#include <string.h>

struct pass pass_of(const struct collectives_config *cfg)
{
    struct pass p = {.key = cfg->key};

    snprintf(p.run_id, sizeof(p.run_id), "%s", cfg->run_id ? cfg->run_id : "");
    return p;
}

void pass_prove(const struct pass *p, enum pass_side side, const void *said, size_t len, const uint8_t *nonce,
                uint8_t proof[static JOBKEY_PROOF_BYTES])
{
    static const char *const purposes[] = {"torchkeeper watch 1: watch", "torchkeeper watch 1: rank",
                                           "torchkeeper link 1: caller", "torchkeeper link 1: called"};
    const struct jobkey_field fields[] = {
        {p->run_id, strlen(p->run_id)}, {said, len}, {nonce, nonce ? JOBKEY_NONCE_BYTES : 0}};

    jobkey_prove(&p->key, purposes[side], fields, ARRAY_LEN(fields), proof);
}

bool pass_holds(const struct pass *p, enum pass_side side, const void *said, size_t len, const uint8_t *nonce,
                const uint8_t proof[static JOBKEY_PROOF_BYTES])
{
    uint8_t want[JOBKEY_PROOF_BYTES];

    pass_prove(p, side, said, len, nonce, want);
    return secret_equal(want, proof, sizeof(want));
}
