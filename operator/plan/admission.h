/* admission.h - what the admission of a Workload sets in a pod: node selectors, tolerations, labels, annotations, a
 * gate. Pure. */
#ifndef TK_OPERATOR_PLAN_ADMISSION_H
#define TK_OPERATOR_PLAN_ADMISSION_H

#include "operator/plan/planner.h"

/* What one assignment (workload.h) sets comes from its flavours and from the updates of admission checks. Returns a key of
 * which they, or they and a pod template, have different values; NULL: none. */
const char *admission_conflict(const struct planner *p, cJSON *assignment, const cJSON *template);

/* Set in the pod of a slot what the assignment says, and the labels, the annotation and the gate of Kueue, while p->queue is
 * QUEUE_RUN. Nothing is overwritten. */
void admission_fill_pod(const struct planner *p, const struct slot *s, cJSON *pod);

#endif
