/* transports.h - the transports that collectives_open chooses between.
 *
 * Ownership: each fills *c, whose rank and world are set, and owns what c->state points to until c->close.
 * Errors:    those of collectives.h; nothing is left open on failure.
 */
#ifndef TK_COLLECTIVES_TRANSPORTS_H
#define TK_COLLECTIVES_TRANSPORTS_H

#include "collectives/collectives.h"

/* One process: nothing to exchange. */
int solo_open(struct collectives *c, struct err *err) MUST_CHECK;

/* All ranks are processes of one host (and of one network and user namespace). */
int host_open(struct collectives *c, const struct collectives_config *cfg, int64_t timeout_ms,
              struct err *err) MUST_CHECK;

/* Ranks are processes of several hosts, or pods; or of one, in which they cannot share memory. */
int pods_open(struct collectives *c, const struct collectives_config *cfg, int64_t timeout_ms,
              struct err *err) MUST_CHECK;

#endif
