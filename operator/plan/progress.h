/* progress.h - a job's progress in its status, from what the launcher in pod 0 answered. Pure. Nothing else of a plan
 * depends on it.
 */
#ifndef TK_OPERATOR_PLAN_PROGRESS_H
#define TK_OPERATOR_PLAN_PROGRESS_H

#include "operator/plan/plan.h"

struct planner;

enum {
    PROGRESS_SPACING_MS = 10000,  /* between two writes that only tell of the progress */
    PROGRESS_REFRESH_MS = 60000,  /* so old what the status says may be, while its summary is still true */
    PROGRESS_IN_VAIN_MS = 300000, /* until a write is tried again of which nothing stayed */
    PROGRESS_SLOW_MS = 3600000,   /* between two events about a slow rank */
};

/* The pod whose launcher is to be asked: pod 0 of a running job that runs torchrun. NULL: none. */
const struct pod *progress_pod(const struct plan_input *in);

/* Whether a pass would find something to tell in a new answer. shown: what the status says. */
bool progress_is_news(const struct plan_progress *in, const struct jobprogress *shown, int64_t now_ms);

/* Set p->st.progress, and add the event about a slow rank. After observe_job. */
void progress_observe(struct planner *p);

/* Whether to write the progress though nothing else is to be written. Later: the pass is planned again in time. */
bool progress_is_due(struct planner *p);

#endif
