/* group.h - a table of collectives.h for a subset of another table's ranks (a process group), built on that
 * table's send and recv.
 *
 * Shapes:    rank i of the group is rank member[i] of the parent. All members pass the same list.
 * Ownership: collectives_group creates a table, collectives_close frees it; the parent must outlive it. One
 *            thread may use both, if all members make their calls to both in the same order. A rank may close
 *            the parent only when all of the parent's ranks have finished with it.
 * Errors:    those of collectives.h; messages name ranks by their numbers in the parent. A failed send or recv
 *            between two members fails the parent too. When members disagree on a call, only the group fails.
 * Numerics:  sums are taken in the order of members, so a group of all ranks gives the parent's bits.
 * Deadlock:  a call is a sequence of exchanges between two members, in which the lower member sends first. Each
 *            member visits its peers in ascending order. So all pairs are ordered (by lower, then by higher
 *            member), and no cycle of waiting members arises, whatever a link can buffer.
 */
#ifndef TK_COLLECTIVES_GROUP_H
#define TK_COLLECTIVES_GROUP_H

#include "collectives/collectives.h"

/* member: n ranks of the parent in ascending order, this process's rank among them; the list is copied. Not a
 * collective call: nothing is sent. NULL on failure: ERR_INVALID. */
struct collectives *collectives_group(struct collectives *parent, const int *member, int n, struct err *err);

#endif
