/* quorum_slots.h - the table of nodes that the quorum knows. Internal to quorum*.c. No system calls. */
#ifndef TK_RENDEZVOUS_QUORUM_SLOTS_H
#define TK_RENDEZVOUS_QUORUM_SLOTS_H

#include "rendezvous/quorum.h"

/* Whether the node asks to join this round and may; and whether it also is not lost. */
bool quorum_fits(const struct quorum *q, const struct quorum_slot *s);
bool quorum_joined(const struct quorum *q, const struct quorum_slot *s);

/* Whether node `ticket` is a member of the round. */
bool quorum_is_member(const struct quorum *q, int64_t ticket);

/* Whether that was the node's phase in this round, by its last word. */
bool quorum_in_round(const struct quorum *q, const struct quorum_slot *s, enum node_phase phase);

/* Whether a member whose ranks run owes a heartbeat. */
bool quorum_owes_word(const struct quorum *q, int64_t now_ms);

/* After how long without a heartbeat a node is lost. */
int64_t quorum_silence_ms(const struct quorum *q);

/* Mark nodes as lost (`gone`): their connection has ended, they are silent, or they were replaced. Returns the ticket of
 * a member that was lost before it was done; while a round forms, of any lost node that was neither leaving nor
 * replaced; 0: none. */
int64_t quorum_expire(struct quorum *q, int64_t now_ms);

/* Whether this member failed after the connection of another member, which was not done, had ended. */
bool quorum_follows_cut(const struct quorum *q, const struct quorum_slot *failed);

#endif
