/* status.h - build the new status of a job, and decide whether to write it now. Pure. */
#ifndef TK_OPERATOR_PLAN_STATUS_H
#define TK_OPERATOR_PLAN_STATUS_H

#include "operator/plan/planner.h"

/* Reason while only some pods run; the REASON column appends the count. */
#define STATUS_PODS_STARTING "PodsStarting"

/* Set p->st to a copy of the job's status that the plan may change. It repairs an edited status: times more
 * than 10 min in the future become now, and missing parts of a finished job's status (phase, condition,
 * completionTime) are restored from the others. jobstatus.h has already dropped counts and lists that are out
 * of bounds. */
void status_begin(struct planner *p);

/* Add the conditions that are missing: all exist from the first write on. */
void status_init_conditions(struct planner *p);

/* Finish the job: set phase, conditions and completionTime. */
void status_finish(struct planner *p, enum job_phase phase, const char *reason, const char *message);

/* Add events about changes from the old to the new status. */
void status_announce(struct planner *p);

/* A merge patch of the status, at the planned version. */
struct action status_action(struct planner *p, const cJSON *diff);

/* The merge patch from the old status to the new one, as an action in *out. False: nothing to write now.
 * Changes other than transitions are written at the earliest a second after the last write. */
bool status_patch(struct planner *p, struct action *out);

/* `ms`, or now if it is more than 10 min in the future. */
int64_t status_time(const struct planner *p, int64_t ms);

#endif
