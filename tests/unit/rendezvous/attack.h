/* attack.h - somebody in the simulated network (world.h) who has recorded the launchers' messages, knows the run id and
 * not the key: connects to the leader, and answers in its place to nodes that dial.
 *
 * It sends nothing, a recorded message, the other side's own message, a proof by another key, zeros, or a message that is too early. When one of
 * these is welcomed, or a node follows another leader than the world's, the world is wrong.
 */
#ifndef TK_TESTS_RENDEZVOUS_ATTACK_H
#define TK_TESTS_RENDEZVOUS_ATTACK_H

#include "world.h"

/* A message between launchers crosses the network. */
void attack_sniff(struct world *w, const struct message *m);
/* Before a turn of the launcher that leads: connect, and answer. */
void attack_leader(struct world *w, int who);
/* What the leader does with a connection of the attacker's; false: it is not one. */
bool attack_hear(struct world *w, int who, const struct leader_action *a);
/* Whether to take the place of the leader for launcher `who`, which dials and has a key; then what to say to its message; false:
 * nothing. */
bool attack_takes(struct world *w, int who);
bool attack_reply(struct world *w, const struct message *m, struct message *reply);

#endif
