/* world_net.h - the simulated network of world.h. */
#ifndef TK_TESTS_RENDEZVOUS_WORLD_NET_H
#define TK_TESTS_RENDEZVOUS_WORLD_NET_H

#include "world.h"

enum { TO_NODE, TO_LEADER };

/* When the first packet for this launcher comes; WORLD_NEVER: none is under way. */
int64_t net_due_ms(const struct world *w, int who);
/* Hand over what has come. */
void net_deliver(struct world *w, int who);
/* Send what the node and the leader of this launcher have to send. */
void net_flush(struct world *w, int who);

/* Its process ended; with `power` also its machine. */
void net_end(struct world *w, int who, bool power);
void net_cut(struct world *w, int who, int64_t until_ms);
void net_reset(struct world *w, int who);
void net_forget(struct world *w, int who);
void net_release(struct world *w);

#endif
