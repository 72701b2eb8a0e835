/* replica.h - restartScope Replica: replace failed pods one by one, without a new attempt. Pure. */
#ifndef TK_OPERATOR_PLAN_REPLICA_H
#define TK_OPERATOR_PLAN_REPLICA_H

#include "operator/plan/judge.h"

/* Whether all failed pods of the judgement can be replaced. False: judge the attempt as a whole. */
bool replica_can_replace(const struct planner *p, const struct judgement *j);

/* Record in the status that the slot's pod is replaced (restarts + 1), before it is deleted and the next one
 * is created. */
void replica_write_ahead(struct planner *p, const struct slot *s);

#endif
