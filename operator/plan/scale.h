/* scale.h - scale an elastic job down, by removing the pods with the highest indices. Pure. */
#ifndef TK_OPERATOR_PLAN_SCALE_H
#define TK_OPERATOR_PLAN_SCALE_H

#include "operator/plan/planner.h"

/* Add an event for each removed pod. lifecycle.c deletes it, as any pod without a slot. */
void scale_announce(struct planner *p);

/* The number of entries of a type in status.tasks: those of the spec, and those of removed indices. */
int scale_entries(const struct planner *p, int type);

/* The status entry of an index that the spec no longer has. Its restart count ensures that a later pod is a
 * new one. */
void scale_remember(const struct planner *p, int type, int index, struct replica_status *r);

#endif
