/* desired_mode.h - apply debug mode or resumeSpecs: what a pod runs instead of its template's command. Pure.
 */
#ifndef TK_OPERATOR_PLAN_DESIRED_MODE_H
#define TK_OPERATOR_PLAN_DESIRED_MODE_H

#include "operator/plan/planner.h"

/* spec: the pod's; container: its training container. Call it before the operator's own fields are added. */
void desired_mode_apply(const struct planner *p, const struct slot *s, cJSON *spec, cJSON *container);

#endif
