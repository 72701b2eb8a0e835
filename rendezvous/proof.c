/* proof.c - nonces and proofs of the meeting. */
#include "rendezvous/proof.h"
#include "common/secret.h"

#include <string.h>

void proof_make(const struct jobkey *key, enum proof_side side, const struct proof_greeting *g,
                uint8_t proof[static MESSAGE_ANSWER_BYTES])
{
    static const char *const purposes[] = {"torchkeeper meeting 1: leader", "torchkeeper meeting 1: node"};
    const uint8_t number[4] = {(uint8_t)g->number, (uint8_t)(g->number >> 8), (uint8_t)(g->number >> 16),
                               (uint8_t)(g->number >> 24)};
    const struct jobkey_field fields[] = {
        {g->run_id, strlen(g->run_id)}, {g->node, MESSAGE_ID_BYTES},
        {number, sizeof(number)},       {g->node_nonce, MESSAGE_NONCE_BYTES},
        {g->leader, MESSAGE_ID_BYTES},  {g->leader_nonce, MESSAGE_NONCE_BYTES}};

    jobkey_prove(key, purposes[side], fields, ARRAY_LEN(fields), proof);
}

bool proof_holds(const struct jobkey *key, enum proof_side side, const struct proof_greeting *g,
                 const uint8_t proof[static MESSAGE_ANSWER_BYTES])
{
    uint8_t want[MESSAGE_ANSWER_BYTES];

    proof_make(key, side, g, want);
    return !key->has || secret_equal(want, proof, sizeof(want));
}

void proof_nonce(const struct jobkey *key, const uint8_t seed[static JOBKEY_NONCE_BYTES], uint64_t number,
                 uint8_t nonce[static MESSAGE_NONCE_BYTES])
{
    memset(nonce, 0, MESSAGE_NONCE_BYTES);
    if (key->has)
        jobkey_nonce(seed, number, nonce);
}
