/* quorum_hang.h - whether a running round hangs, and which rank's evidence is the strongest. Internal to quorum*.c. No system
 * calls. */
#ifndef TK_RENDEZVOUS_QUORUM_HANG_H
#define TK_RENDEZVOUS_QUORUM_HANG_H

#include "rendezvous/quorum.h"

/* Whether all members that are not done have become quiet: then say so in the state, once in a round. If members have become done
 * since the last time, state.done says that first, and the others have to be quiet anew. A lost member is
 * quorum_expire's business. */
bool quorum_hang_begins(struct quorum *q, int64_t now_ms);

/* Whether each member has told its suspect, is done, or leaves. */
bool quorum_hang_told(const struct quorum *q);

/* The member with the strongest cause; NULL: no member has reported a suspect. */
const struct quorum_slot *quorum_suspect(const struct quorum *q);

#endif
