/* group.h - some of a table's ranks as a table of their own, over that table's send and recv.
 *
 * Shapes:    the members keep their order: the group's rank i is member[i]. Every member names the same members.
 * Ownership: collectives_group gives a table that collectives_close ends; the parent outlives it. Both may be used,
 *            by one thread, as long as all members agree on the order of their calls.
 *            A rank may leave, and close the parent, when all of the parent's ranks are done with it.
 * Errors:    those of collectives.h; ranks in the messages are the parent's. A failure between two members fails the
 *            parent as well, for it is the parent's links that broke.
 * Numerics:  sums in the order of members, as the parent's are in the order of ranks: the same bits.
 * Deadlock:  each call is a row of exchanges between two members, the lower of which sends first; every member goes
 *            through its peers in ascending order, so that the pairs of all members follow one order (by lower, then by
 *            higher member) and nobody waits in a circle, whatever a link can hold.
 */
#ifndef TK_COLLECTIVES_GROUP_H
#define TK_COLLECTIVES_GROUP_H

#include "collectives/collectives.h"

/* member: n ranks of the parent, ascending, this process's own among them. Not a call that others must make: nothing
 * is sent. NULL on failure: ERR_INVALID. */
struct collectives *collectives_group(struct collectives *parent, const int *member, int n, struct err *err);

#endif
