/* desired_service.h - build the headless Service through which the pods resolve each other's names. Pure. */
#ifndef TK_OPERATOR_PLAN_DESIRED_SERVICE_H
#define TK_OPERATOR_PLAN_DESIRED_SERVICE_H

#include "operator/plan/planner.h"

/* Free with cJSON_Delete. */
cJSON *desired_service(struct planner *p);

#endif
