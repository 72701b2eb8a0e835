/* status.h - the whole new status, and whether it has to be written. Pure. */
#ifndef TK_OPERATOR_PLAN_STATUS_H
#define TK_OPERATOR_PLAN_STATUS_H

#include "operator/plan/planner.h"

/* The reason of a gang some of whose pods run; the REASON column has the count behind it. */
#define STATUS_PODS_STARTING "PodsStarting"

/* A copy of the job's status that this pass may change. */
void status_begin(struct planner *p);

/* Conditions that must exist from the first write on. */
void status_init_conditions(struct planner *p);

/* The job is over: phase, conditions, completionTime. */
void status_finish(struct planner *p, enum job_phase phase, const char *reason, const char *message);

/* The tasks and their pods, with the counts that the status has of them. */
void status_observe_tasks(struct planner *p);

/* What the pods show: tasks, ready, gpus, phase and Running of a live job. */
void status_observe(struct planner *p);

/* Events that tell a change between the old and the new status. */
void status_announce(struct planner *p);

/* The patch that makes the old status the new one as an action in *out; false: nothing to write now. A write
 * that is no transition waits until a second after the last write. */
bool status_patch(struct planner *p, struct action *out);

#endif
