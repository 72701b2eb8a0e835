/* scale.h - an elastic job with fewer pods than before: the highest indices leave. Pure. */
#ifndef TK_OPERATOR_PLAN_SCALE_H
#define TK_OPERATOR_PLAN_SCALE_H

#include "operator/plan/planner.h"

/* Tells which pods leave. They are deleted like any pod that has no place. */
void scale_announce(struct planner *p);

/* The replicas of a type in the status: those of the spec, and those that left. */
int scale_places(const struct planner *p, int type);

/* What the status remembers of a place that the spec no longer has: its next pod will be another one. */
void scale_remember(const struct planner *p, int type, int index, struct replica_status *r);

#endif
