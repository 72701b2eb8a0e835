/* node_line.h - a node's connections to the leader. Internal to node*.c. No system calls. */
#ifndef TK_RENDEZVOUS_NODE_LINE_H
#define TK_RENDEZVOUS_NODE_LINE_H

#include "rendezvous/node.h"

/* After how long without a word from the leader it is lost, and how often the node says its state. */
int64_t node_silence_ms(const struct node *n);
int64_t node_interval_ms(const struct node *n);

/* The connection that was welcomed last and has not ended; NULL: none. */
struct node_link *node_current(struct node *n);

/* Whether the leader has answered the last NODE, and there is nothing newer to tell. */
bool node_was_heard(const struct node *n);

/* Set line.lost where the leader counts as lost. */
void node_judge_line(struct node *n, int64_t now_ms);

/* This process stood still for `gap_ms`: extend the leader's deadlines by that time. */
void node_excuse_line(struct node *n, int64_t gap_ms, int64_t now_ms);

/* The earliest time at which the line has something to do; INT64_MAX: none. */
int64_t node_line_next_ms(const struct node *n, int64_t now_ms);

#endif
