/* finish.h - end a job that has succeeded or passed its deadline, and delete its remaining objects. Pure. */
#ifndef TK_OPERATOR_PLAN_FINISH_H
#define TK_OPERATOR_PLAN_FINISH_H

#include "operator/plan/planner.h"

/* Finish the job if the master (pod 0 of the first type) succeeded. True: p->st is finished. */
bool finish_if_succeeded(struct planner *p);

/* Finish the job if activeDeadlineSeconds have passed since startTime. True: p->st is finished. */
bool finish_if_overdue(struct planner *p);

/* Plan the deletions for a finished job: cleanUpPolicy, sidecarGraceSeconds, ttlSecondsAfterFinished. */
void finish_clean_up(struct planner *p);

/* forceDeleteAfterSeconds, for any job: force-delete pods that stay Terminating, without waiting for their
 * node. */
void finish_force_deletes(struct planner *p);

#endif
