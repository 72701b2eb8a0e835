/* transports.h - the constructors of the transports, for collectives_open.
 *
 * Ownership: each fills *c, whose rank and world the caller has set; c->close frees what c->state points to.
 * Errors:    those of collectives.h; on failure nothing stays open. timeout_ms is that of collectives_open.
 */
#ifndef TK_COLLECTIVES_TRANSPORTS_H
#define TK_COLLECTIVES_TRANSPORTS_H

#include "collectives/collectives.h"

/* A run of one process. */
int solo_open(struct collectives *c, struct err *err) MUST_CHECK;

/* All ranks run on one host, as one user and in one network namespace: shared memory (host.h). */
int host_open(struct collectives *c, const struct collectives_config *cfg, int64_t timeout_ms,
              struct err *err) MUST_CHECK;

/* The ranks run in several pods (hosts), or in one whose ranks cannot share memory: TCP between pods (pods.h). */
int pods_open(struct collectives *c, const struct collectives_config *cfg, int64_t timeout_ms,
              struct err *err) MUST_CHECK;

#endif
