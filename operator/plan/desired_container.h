/* desired_container.h - what the operator sets in the training container of a pod. Pure. */
#ifndef TK_OPERATOR_PLAN_DESIRED_CONTAINER_H
#define TK_OPERATOR_PLAN_DESIRED_CONTAINER_H

#include "operator/plan/planner.h"

/* Add what the operator sets in the training container: torchrun's command line, or environment variables
 * (RANK, ...). */
void desired_container(struct planner *p, const struct slot *s, cJSON *container);

#endif
