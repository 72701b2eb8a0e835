/* replica.h - restartScope Replica: whether failed pods can be replaced one by one. Pure. */
#ifndef TK_OPERATOR_PLAN_REPLICA_H
#define TK_OPERATOR_PLAN_REPLICA_H

#include "operator/plan/judge.h"

/* False: the attempt as a whole has to be judged. */
bool replica_can_replace(const struct planner *p, const struct judgement *j);

/* The slot's pod is of the past: written ahead, before the pod goes and the next one comes. */
void replica_write_ahead(struct planner *p, const struct slot *s);

/* The cached status does not know of a replacement that is already there. */
bool replica_status_is_behind(const struct planner *p);

#endif
