/* proof.c - nonces and proofs of the meeting. */
#include "rendezvous/proof.h"
#include "common/secret.h"

#include <stdio.h>
#include <string.h>

void proof_make(const struct jobkey *key, enum proof_side side, const struct proof_greeting *g,
                uint8_t proof[static MESSAGE_ANSWER_BYTES])
{
    const uint8_t number[4] = {(uint8_t)g->number, (uint8_t)(g->number >> 8), (uint8_t)(g->number >> 16),
                               (uint8_t)(g->number >> 24)};
    struct hmac h;

    memset(proof, 0, MESSAGE_ANSWER_BYTES);
    if (!key->has)
        return;
    jobkey_begin(&h, key,
                 side == PROOF_LEADER ? "torchkeeper meeting 1: leader" : "torchkeeper meeting 1: node");
    jobkey_field(&h, g->run_id, strlen(g->run_id));
    jobkey_field(&h, g->node, MESSAGE_ID_BYTES);
    jobkey_field(&h, number, sizeof(number));
    jobkey_field(&h, g->node_nonce, MESSAGE_NONCE_BYTES);
    jobkey_field(&h, g->leader, MESSAGE_ID_BYTES);
    jobkey_field(&h, g->leader_nonce, MESSAGE_NONCE_BYTES);
    jobkey_end(&h, proof);
}

bool proof_holds(const struct jobkey *key, enum proof_side side, const struct proof_greeting *g,
                 const uint8_t proof[static MESSAGE_ANSWER_BYTES])
{
    uint8_t want[MESSAGE_ANSWER_BYTES];

    if (!key->has)
        return true;
    proof_make(key, side, g, want);
    return secret_equal(want, proof, sizeof(want));
}

void proof_nonce(const struct jobkey *key, const uint8_t seed[static JOBKEY_NONCE_BYTES], uint64_t number,
                 uint8_t nonce[static MESSAGE_NONCE_BYTES])
{
    memset(nonce, 0, MESSAGE_NONCE_BYTES);
    if (key->has)
        jobkey_nonce(seed, number, nonce);
}

void proof_hello(const struct jobkey *key, const uint8_t seed[static JOBKEY_NONCE_BYTES], const char *run_id,
                 const uint8_t id[static MESSAGE_ID_BYTES], uint32_t number, struct message_hello *ret)
{
    *ret = (struct message_hello){.version = MESSAGE_VERSION, .number = number, .auth = key->has};
    memcpy(ret->id, id, sizeof(ret->id));
    proof_nonce(key, seed, number, ret->nonce);
    snprintf(ret->run_id, sizeof(ret->run_id), "%s", run_id);
}
