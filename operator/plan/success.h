/* success.h - decide whether a job has succeeded or passed its deadline, and delete the pods of a finished
 * one. Pure.
 */
#ifndef TK_OPERATOR_PLAN_SUCCESS_H
#define TK_OPERATOR_PLAN_SUCCESS_H

#include "operator/plan/planner.h"

/* Finish the job if the master (pod 0 of the first type) succeeded. True: p->st is finished. */
bool success_check(struct planner *p);

/* Finish the job if activeDeadlineSeconds have passed since startTime. True: p->st is finished. */
bool deadline_check(struct planner *p);

/* Plan the cleanup of a finished job: cleanUpPolicy, ttlSecondsAfterFinished. */
void cleanup_finished(struct planner *p);

#endif
