/* desired_pod.h - build a pod of the job: the user's template, unchanged but for the fields that the operator
 * owns. Pure.
 */
#ifndef TK_OPERATOR_PLAN_DESIRED_POD_H
#define TK_OPERATOR_PLAN_DESIRED_POD_H

#include "operator/plan/planner.h"

/* Free with cJSON_Delete. */
cJSON *desired_pod(struct planner *p, const struct slot *s);

/* Warn, in events, about a template that will probably not work as intended; once, when the job starts. */
void desired_pod_warnings(struct planner *p);

/* Set ownerReferences: {apiVersion, kind, name, uid, controller, blockOwnerDeletion} of the job. */
void desired_owner(const struct trainjob *job, cJSON *metadata);

#endif
