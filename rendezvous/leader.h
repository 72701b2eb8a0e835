/* leader.h - the leader of a rendezvous: hosts the store, reads what each node wrote there, decides by quorum.h, and
 * publishes the result. For the launcher on the node that hosts.
 *
 * Ownership: leader_start gives a leader that leader_stop ends, its store with it.
 * Threads:   one of its own besides the store's; leader_over may be asked by any.
 * Errors:    as store_server_start: ERR_CONFLICT when the port is taken.
 */
#ifndef TK_RENDEZVOUS_LEADER_H
#define TK_RENDEZVOUS_LEADER_H

#include "rendezvous/quorum.h"

struct leader;

struct leader *leader_start(int port, const char *run_id, const struct quorum_config *c, struct err *err);
int leader_port(const struct leader *c);

/* The run has ended and every living node knows: stopping now takes nobody by surprise. */
bool leader_over(const struct leader *c);

void leader_stop(struct leader *c);

#endif
