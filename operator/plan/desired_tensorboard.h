/* desired_tensorboard.h - TensorBoard for a job: a Deployment and a Service, or nothing. Pure. */
#ifndef TK_OPERATOR_PLAN_DESIRED_TENSORBOARD_H
#define TK_OPERATOR_PLAN_DESIRED_TENSORBOARD_H

#include "operator/plan/planner.h"

/* On TensorBoard's pods: the job's name. */
#define LABEL_TENSORBOARD "batch.tensorstack.dev/tensorboard"

/* Fills p->tensorboard with actions and p->st.tensorboard. */
void tensorboard_plan(struct planner *p);

/* The objects; `hash` is set on the Deployment. Free with cJSON_Delete. */
cJSON *desired_tensorboard_deployment(struct planner *p, int replicas, const char *hash);
cJSON *desired_tensorboard_service(struct planner *p);

/* Prefers pod 0's node, where a ReadWriteOnce volume is; an empty object without one. */
cJSON *desired_tensorboard_affinity(const struct planner *p);

#endif
