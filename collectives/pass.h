/* pass.h - proofs by which two processes of a run show that they have its job key: an HMAC over the run id and a message
 * that both have seen (rendezvous/PROTOCOL.md, "The key of a job"). watch*.c use it between the watch and a rank,
 * pods_links.c between two ranks.
 *
 * Without a key, proofs are zeros and pass_holds accepts zeros: a caller checks pass.key.has first.
 */
#ifndef TK_COLLECTIVES_PASS_H
#define TK_COLLECTIVES_PASS_H

#include "common/jobkey.h"

struct collectives_config;

enum { PASS_RUN_ID_BYTES = 256 };

struct pass {
    char run_id[PASS_RUN_ID_BYTES]; /* filled up with 0; "": none */
    struct jobkey key;
};

struct pass pass_of(const struct collectives_config *cfg);

/* Who proves. A proof of one side is not valid for another one. */
enum pass_side {
    PASS_WATCH,  /* the watch, to a rank */
    PASS_RANK,   /* a rank, to the watch */
    PASS_CALLER, /* the rank that opens a link */
    PASS_CALLED, /* the rank that accepts it */
};

/* Compute or check a proof over the run id, `len` bytes of the message `said`, and `nonce`; NULL: the message itself
 * contains a nonce. */
void pass_prove(const struct pass *p, enum pass_side side, const void *said, size_t len, const uint8_t *nonce,
                uint8_t proof[static JOBKEY_PROOF_BYTES]);
bool pass_holds(const struct pass *p, enum pass_side side, const void *said, size_t len, const uint8_t *nonce,
                const uint8_t proof[static JOBKEY_PROOF_BYTES]);

#endif
