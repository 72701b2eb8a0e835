/* gang.h - the PodGroup through which a gang scheduler starts all pods of an attempt together, or none: which
 * attempts have one, its object, and its delete. Pure.
 *
 * Limits:    PodGroups are not watched. gang_create adds the create to each plan that creates pods; actions.c
 *            compares an object that exists before the attempt's first pod. gang_delete adds the delete to each plan that ends an
 *            attempt, and again while pods of an ended attempt remain.
 */
#ifndef TK_OPERATOR_PLAN_GANG_H
#define TK_OPERATOR_PLAN_GANG_H

#include "operator/plan/planner.h"

/* Whose PodGroup the attempt's pods are in. While the attempt has a pod, that pod's label decides: all pods of an
 * attempt are in it, or none. Otherwise the operator's option decides; but a job whose template has another
 * scheduler, or a PodGroup of its own, gets none. */
enum gang_scheduler gang_of(const struct planner *p);

/* Whether the template names a PodGroup or another scheduler than the default one. */
bool gang_is_theirs(const cJSON *template);

/* Set the PodGroup, the scheduler and the priority in a pod that is created now. */
void gang_join(const struct planner *p, cJSON *pod);

/* Add the PodGroup to p->creates. */
void gang_create(struct planner *p);

/* Whether the scheduler says that the PodGroup of the attempt's pods does not exist. */
bool gang_is_missed(const struct planner *p);

/* Fill p->gangs. Call it when p->st has its final attempt and phase. */
void gang_delete(struct planner *p);

#endif
