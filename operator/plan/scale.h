/* scale.h - scale an elastic job down: the pods with the highest indices are removed. Pure. */
#ifndef TK_OPERATOR_PLAN_SCALE_H
#define TK_OPERATOR_PLAN_SCALE_H

#include "operator/plan/planner.h"

/* Add an event for each pod that is removed. The deletion is that of any pod without a slot. */
void scale_announce(struct planner *p);

/* The number of entries of a type in status.tasks: those of the spec, and those of removed indices. */
int scale_places(const struct planner *p, int type);

/* The status entry of an index that the spec no longer has; its restart count makes sure that a later pod is
 * a new one. */
void scale_remember(const struct planner *p, int type, int index, struct replica_status *r);

#endif
