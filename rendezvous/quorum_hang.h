/* quorum_hang.h - whether a running round hangs, and which rank's evidence is the strongest. quorum.c calls
 * it. No system calls. */
#ifndef TK_RENDEZVOUS_QUORUM_HANG_H
#define TK_RENDEZVOUS_QUORUM_HANG_H

#include "rendezvous/quorum.h"

/* If all members that are not done are quiet, set state.hung, once per round, and return true. If more
 * members are done than state.done says, update state.done instead: the others then restart their hang
 * timeout. quorum_expire handles lost members. */
bool quorum_hang_begins(struct quorum *q, int64_t now_ms);

/* Whether each member has reported its suspect, is done, or leaves. */
bool quorum_suspects_reported(const struct quorum *q);

/* The member with the strongest cause; NULL: no member has reported a suspect. */
const struct quorum_slot *quorum_suspect(const struct quorum *q);

#endif
