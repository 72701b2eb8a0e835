/* admission.h - what the admission of a Workload sets in a pod: node selectors, tolerations, labels, annotations, a
 * gate. Pure. */
#ifndef TK_OPERATOR_PLAN_ADMISSION_H
#define TK_OPERATOR_PLAN_ADMISSION_H

#include "operator/plan/planner.h"

/* Set what one assignment (workload.h) says in a pod, or in a pod template: the labels and tolerations of its flavours,
 * and the updates of admission checks. Nothing is overwritten. Returns a key that would be; NULL: none. */
const char *admission_assign(const struct planner *p, const cJSON *assignment, cJSON *pod);

/* The same in the pod of a slot, and the labels, the annotation and the gate of Kueue, while p->queue is QUEUE_RUN. */
void admission_fill_pod(const struct planner *p, const struct slot *s, cJSON *pod);

#endif
