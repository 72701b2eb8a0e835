/* desired_pod.h - a pod of the job: the user's template, untouched but for the fields we own. Pure. */
#ifndef TK_OPERATOR_PLAN_DESIRED_POD_H
#define TK_OPERATOR_PLAN_DESIRED_POD_H

#include "operator/plan/planner.h"

/* Free with cJSON_Delete. */
cJSON *desired_pod(struct planner *p, const struct slot *s);

/* What goes into the training container: torchrun or the plain variables. */
void desired_pod_container(struct planner *p, const struct slot *s, cJSON *container);

/* Warnings about a template that will probably not do what its author wants; told once, when the job starts.
 * */
void desired_pod_warnings(struct planner *p);

/* {apiVersion, kind, name, uid, controller, blockOwnerDeletion} of the job. */
void desired_owner(const struct trainjob *job, cJSON *metadata);

#endif
