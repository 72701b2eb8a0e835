/* pass.h - how processes of a run authenticate each other: by the run id and, if the job has a key, by a
 * proof of it (rendezvous/PROTOCOL.md, "The key of a job"). watch*.c and pods_links.c use it.
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

/* Compute or check the proof of one side. It covers `len` bytes of the message `said`, and `nonce` unless
 * that is NULL (the message then contains a nonce). */
enum pass_side { PASS_WATCH, PASS_RANK, PASS_CALLER, PASS_CALLED };
void pass_prove(const struct pass *p, enum pass_side side, const void *said, size_t len, const uint8_t *nonce,
                uint8_t proof[static JOBKEY_PROOF_BYTES]);
bool pass_holds(const struct pass *p, enum pass_side side, const void *said, size_t len, const uint8_t *nonce,
                const uint8_t proof[static JOBKEY_PROOF_BYTES]);

#endif
