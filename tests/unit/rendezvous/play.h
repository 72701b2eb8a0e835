/* play.h - a quorum whose nodes and clock are played by hand.
 *
 * Nodes are called by their tickets, from 1 on: node t is at 10.0.0.t with t + 1 ranks, and node 2 is the leader's own.
 */
#ifndef TK_TESTS_RENDEZVOUS_PLAY_H
#define TK_TESTS_RENDEZVOUS_PLAY_H

#include "rendezvous/quorum.h"

/* Two nodes, no more and no fewer, and two restarts. */
extern const struct quorum_config play_fixed_2;

struct quorum_config play_elastic(int min, int max);

/* All of n nodes have joined by the end of the last call, and their ranks run. */
void play_begin(struct quorum *q, const struct quorum_config *c, int n);

/* A node's record; each is a new heartbeat. */
void play_hear(struct quorum *q, int64_t ticket, enum node_phase phase, int64_t now);
void play_all(struct quorum *q, int n, enum node_phase phase, int64_t now);

/* A rank of it ended with `code`; unsure: as in meeting_cause. */
void play_failure(struct quorum *q, int64_t ticket, int code, int unsure, int64_t now);

/* The round runs, with these nodes in this order. */
void play_expect(const struct quorum *q, int n, const int64_t *tickets);
#define PLAY_EXPECT(q, ...)                                                                                  \
    play_expect((q), (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (int64_t[]){__VA_ARGS__})

#endif
