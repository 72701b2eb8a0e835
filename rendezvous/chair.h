/* chair.h - the node that hosts the store also chairs the meeting: it reads what nodes say, lets quorum.h decide, and
 * tells all.
 *
 * Ownership: chair_start gives a chair that chair_stop ends, its store with it.
 * Threads:   one of its own besides the store's; chair_over may be asked by any.
 * Errors:    as store_server_start: ERR_CONFLICT when the port is taken.
 */
#ifndef TK_RENDEZVOUS_CHAIR_H
#define TK_RENDEZVOUS_CHAIR_H

#include "rendezvous/quorum.h"

struct chair;

struct chair *chair_start(int port, const char *run_id, const struct quorum_config *c, struct err *err);
int chair_port(const struct chair *c);

/* The run has ended and every living node knows: stopping now takes nobody by surprise. */
bool chair_over(const struct chair *c);

void chair_stop(struct chair *c);

#endif
