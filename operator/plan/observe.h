/* observe.h - set the part of the new status that follows from the pods. Pure. */
#ifndef TK_OPERATOR_PLAN_OBSERVE_H
#define TK_OPERATOR_PLAN_OBSERVE_H

#include "operator/plan/planner.h"

/* Set status.tasks from the pods, with the counts of the old status. */
void observe_tasks(struct planner *p);

/* Set tasks, ready, gpus, replicas, phase, reason and condition Running. */
void observe_job(struct planner *p);

#endif
