/* cleanup.h - delete the pods of a finished job, and later the job, as its spec asks. Pure. */
#ifndef TK_OPERATOR_PLAN_CLEANUP_H
#define TK_OPERATOR_PLAN_CLEANUP_H

#include "operator/plan/planner.h"

/* Plan the cleanup of a finished job: cleanUpPolicy, ttlSecondsAfterFinished. */
void cleanup_finished(struct planner *p);

#endif
