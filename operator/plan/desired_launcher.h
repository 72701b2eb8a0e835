/* desired_launcher.h - bring the operator's own launcher into a pod whose image need not have one
 * (torchrunConfig.launcher: Torchkeeper): an init container copies it into an emptyDir, where the training container
 * finds it. Pure.
 */
#ifndef TK_OPERATOR_PLAN_DESIRED_LAUNCHER_H
#define TK_OPERATOR_PLAN_DESIRED_LAUNCHER_H

#include "operator/plan/planner.h"

/* Whether the pods of this plan run it: not in debug mode, where no torchrun runs. */
bool desired_launcher_runs(const struct planner *p);

/* spec: the pod's; container: its training container. Call it after desired_mode_apply, which may remove init
 * containers. */
void desired_launcher_add(const struct planner *p, cJSON *spec, cJSON *container);

#endif
