/* lifecycle.h - plan a job that has not finished: start, run, pause, resume. Pure. */
#ifndef TK_OPERATOR_PLAN_LIFECYCLE_H
#define TK_OPERATOR_PLAN_LIFECYCLE_H

#include "operator/plan/planner.h"

/* The first two may finish p->st; then finish_clean_up follows. */
void lifecycle_run(struct planner *p);
void lifecycle_pause(struct planner *p);
void lifecycle_wait(struct planner *p); /* without pods, until Kueue admits the job */

#endif
