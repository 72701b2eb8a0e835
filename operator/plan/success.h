/* success.h - when a job ends well or by deadline, and which of its pods stay. Pure. */
#ifndef TK_OPERATOR_PLAN_SUCCESS_H
#define TK_OPERATOR_PLAN_SUCCESS_H

#include "operator/plan/planner.h"

/* The master's success is the job's. True: p->st is finished. */
bool success_check(struct planner *p);

/* activeDeadlineSeconds from the newest startTime. True: p->st is finished. */
bool deadline_check(struct planner *p);

/* What a finished job still needs: cleanUpPolicy, time to live. */
void cleanup_finished(struct planner *p);

#endif
