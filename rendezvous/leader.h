/* leader.h - the leader of a rendezvous: hosts the store, reads what each node wrote there, decides by quorum.h,
 * and publishes the result. For the launcher on the node that hosts.
 *
 * Ownership: leader_start gives a leader that leader_stop ends, its store with it.
 * Threads:   runs one thread besides the store's; any thread may call leader_over and leader_steps.
 * Errors:    as store_server_start: ERR_CONFLICT when the port is taken.
 */
#ifndef TK_RENDEZVOUS_LEADER_H
#define TK_RENDEZVOUS_LEADER_H

#include "rendezvous/quorum.h"

struct leader;

/* Serve the store at `port` (0: any, see leader_port) and start to decide. *c is copied, its strings are not. */
struct leader *leader_start(int port, const char *run_id, const struct quorum_config *c, struct err *err);
int leader_port(const struct leader *c);

/* Whether the run has ended and every node that is still there has reported that it knows: the store may stop
 * now. Also true when the leader has failed. */
bool leader_over(const struct leader *c);

/* The times of steps over all nodes, when last all had told a new window of their round; window 0: never yet. */
struct steps leader_steps(struct leader *c);

void leader_stop(struct leader *c);

#endif
