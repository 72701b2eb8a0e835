/* node_line.h - a node's connections to the leader. Internal to node*.c. No system calls. */
#ifndef TK_RENDEZVOUS_NODE_LINE_H
#define TK_RENDEZVOUS_NODE_LINE_H

#include "rendezvous/node.h"

/* The connection that was welcomed last and has not ended; NULL: none. */
struct node_link *node_current(struct node *n);

/* Whether the leader has acknowledged the newest state of this node. */
bool node_is_acknowledged(const struct node *n);

/* Set line.lost if the leader is lost by now. */
void node_check_leader(struct node *n, int64_t now_ms);

/* The earliest time at which a connection has something to do; INT64_MAX: none. */
int64_t node_line_next_ms(const struct node *n, int64_t now_ms);

#endif
