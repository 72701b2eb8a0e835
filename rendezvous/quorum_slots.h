/* quorum_slots.h - the nodes that the quorum knows of. Internal to quorum.c. Pure. */
#ifndef TK_RENDEZVOUS_QUORUM_SLOTS_H
#define TK_RENDEZVOUS_QUORUM_SLOTS_H

#include "rendezvous/quorum.h"

/* Has it said that it joins this round, and may it? And is it still there? */
bool quorum_fits(const struct quorum *q, const struct quorum_slot *s);
bool quorum_joined(const struct quorum *q, const struct quorum_slot *s);

/* Is node `ticket` in the round? */
bool quorum_is_member(const struct quorum *q, int64_t ticket);

/* How long a node may say nothing. */
int64_t quorum_silence_ms(const struct quorum *q);

/* Forget nodes that are lost: cut off, silent, replaced. If we were stopped ourselves, the others' words wait in the store: their silence counts only
 * from when we could have heard them. Returns the ticket of a member that is gone unfinished, 0: none; while a round forms,
 * of any node that may come again. */
int64_t quorum_expire(struct quorum *q, int64_t now_ms);

/* Did this member fail after the connection of another, which had not done its part, had ended? */
bool quorum_follows_cut(const struct quorum *q, const struct quorum_slot *failed);

#endif
