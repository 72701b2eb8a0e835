/* desired_mode.h - debug mode and resumeSpecs: what a pod runs instead of what its template says. Pure. */
#ifndef TK_OPERATOR_PLAN_DESIRED_MODE_H
#define TK_OPERATOR_PLAN_DESIRED_MODE_H

#include "operator/plan/planner.h"

/* `spec` is the pod's, `container` its training container; before anything of ours is added. */
void desired_mode_apply(const struct planner *p, const struct slot *s, cJSON *spec, cJSON *container);

#endif
