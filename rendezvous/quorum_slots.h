/* quorum_slots.h - the table of the nodes that the quorum knows. quorum.c calls it. No
 * system calls. */
#ifndef TK_RENDEZVOUS_QUORUM_SLOTS_H
#define TK_RENDEZVOUS_QUORUM_SLOTS_H

#include "rendezvous/quorum.h"

/* quorum_fits: whether the node is joining this round and is allowed to. quorum_joined: the same, and it is
 * not lost. */
bool quorum_fits(const struct quorum *q, const struct quorum_slot *s);
bool quorum_joined(const struct quorum *q, const struct quorum_slot *s);

/* Whether the node's last record has this phase and is about this round. */
bool quorum_in_round(const struct quorum *q, const struct quorum_slot *s, enum node_phase phase);

/* Whether the heartbeat of a member whose ranks run is late. */
bool quorum_heartbeat_due(const struct quorum *q, int64_t now_ms);

/* Mark nodes as lost (`gone`): their connection has ended, they are silent, or another node has replaced
 * them. Returns a member that was lost before it was done; while a round forms, any lost node that was not
 * leaving and not replaced; NULL: none. */
const struct quorum_slot *quorum_expire(struct quorum *q, int64_t now_ms);

/* Whether this member failed after the connection of another member, which was not done, had ended. */
bool quorum_follows_disconnect(const struct quorum *q, const struct quorum_slot *failed);

#endif
