/* proof.h - the proofs of the meeting: by which a node and a leader show each other that they have the key of the job
 * (PROTOCOL.md). No system calls.
 */
#ifndef TK_RENDEZVOUS_PROOF_H
#define TK_RENDEZVOUS_PROOF_H

#include "common/jobkey.h"
#include "rendezvous/message.h"

/* What both sides of a greeting know of it. */
struct proof_greeting {
    const char *run_id;
    const uint8_t *node, *node_nonce; /* as HELLO says, with the number of the connection */
    uint32_t number;
    const uint8_t *leader, *leader_nonce; /* as CHALLENGE says */
};

/* Without a key a proof is zeros. */
enum proof_side { PROOF_LEADER, PROOF_NODE };
void proof_make(const struct jobkey *key, enum proof_side side, const struct proof_greeting *g,
                uint8_t proof[static MESSAGE_ANSWER_BYTES]);
/* Whether that side has proved it; without a key: always. In constant time. */
bool proof_holds(const struct jobkey *key, enum proof_side side, const struct proof_greeting *g,
                 const uint8_t proof[static MESSAGE_ANSWER_BYTES]);

/* The nonce of a greeting; without a key zeros. */
void proof_nonce(const struct jobkey *key, const uint8_t seed[static JOBKEY_NONCE_BYTES], uint64_t number,
                 uint8_t nonce[static MESSAGE_NONCE_BYTES]);

#endif
