/* tensorboard.h - plan TensorBoard for a job: a Deployment and a Service, or their removal. Pure. */
#ifndef TK_OPERATOR_PLAN_TENSORBOARD_H
#define TK_OPERATOR_PLAN_TENSORBOARD_H

#include "operator/plan/planner.h"

/* Fill p->tensorboard with actions, and p->st.tensorboard. */
void tensorboard_plan(struct planner *p);

#endif
