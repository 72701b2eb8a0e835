/* desired_tensorboard.h - build the Deployment and the Service of TensorBoard. Pure. */
#ifndef TK_OPERATOR_PLAN_DESIRED_TENSORBOARD_H
#define TK_OPERATOR_PLAN_DESIRED_TENSORBOARD_H

#include "operator/plan/planner.h"

/* Label of TensorBoard's pods; its value is the job's name. */
#define LABEL_TENSORBOARD "batch.tensorstack.dev/tensorboard"

/* Build the objects. `hash` becomes the annotation ANNOTATION_SPEC_HASH of the Deployment. Free with
 * cJSON_Delete. */
cJSON *desired_tensorboard_deployment(struct planner *p, int replicas, const char *hash);
cJSON *desired_tensorboard_service(struct planner *p);

/* An affinity that prefers pod 0's node, where a ReadWriteOnce volume is; an empty object while pod 0 has no
 * node. */
cJSON *desired_tensorboard_affinity(const struct planner *p);

#endif
