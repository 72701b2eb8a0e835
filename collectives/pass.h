/* pass.h - by what the processes of a run know each other: the run id and, where the job has one, its key; nonces and proofs of the
 * watch and of the links (rendezvous/PROTOCOL.md, "The key of a job"). Internal to the library.
 */
#ifndef TK_COLLECTIVES_PASS_H
#define TK_COLLECTIVES_PASS_H

#include "common/jobkey.h"

struct collectives_config;

struct pass {
    const char *run_id; /* "": none */
    struct jobkey key;
};

struct pass pass_of(const struct collectives_config *cfg);

/* 32 bytes that nobody can foretell. */
void pass_nonce(uint8_t nonce[static JOBKEY_NONCE_BYTES]);

/* A proof of what both sides know: some bytes that one of them has sent, and the other's nonce. */
enum pass_purpose { PASS_WATCH, PASS_RANK, PASS_LINK };
struct pass_talk {
    const void *said;
    size_t len;
    const void *nonce;
    size_t nonce_len;
};
void pass_prove(const struct pass *p, enum pass_purpose purpose, const struct pass_talk *t,
                uint8_t proof[static JOBKEY_PROOF_BYTES]);
/* In constant time. */
bool pass_holds(const struct pass *p, enum pass_purpose purpose, const struct pass_talk *t,
                const uint8_t proof[static JOBKEY_PROOF_BYTES]);

#endif
