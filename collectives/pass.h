/* pass.h - how processes of a run authenticate each other: by the run id and, where the job has one, by a proof that
 * they have its key (rendezvous/PROTOCOL.md, "The key of a job"). Internal to the library.
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

/* The proof of one side, which covers what one of them has said and a nonce; NULL: what was said has one in it. */
enum pass_side { PASS_WATCH, PASS_RANK, PASS_CALLER, PASS_CALLED };
void pass_prove(const struct pass *p, enum pass_side side, const void *said, size_t len, const uint8_t *nonce,
                uint8_t proof[static JOBKEY_PROOF_BYTES]);
bool pass_holds(const struct pass *p, enum pass_side side, const void *said, size_t len, const uint8_t *nonce,
                const uint8_t proof[static JOBKEY_PROOF_BYTES]);

#endif
