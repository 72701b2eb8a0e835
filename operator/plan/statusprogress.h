/* statusprogress.h - a job's progress in its status, from the answer of the launcher in pod 0. Pure. No other part
 * of a plan depends on it.
 */
#ifndef TK_OPERATOR_PLAN_STATUSPROGRESS_H
#define TK_OPERATOR_PLAN_STATUSPROGRESS_H

#include "operator/plan/plan.h"

struct planner;

enum {
    PROGRESS_SPACING_MS = 10000,  /* between two writes of only the progress */
    PROGRESS_REFRESH_MS = 60000,  /* maximal age in the status while the summary is unchanged */
    PROGRESS_DROPPED_MS = 300000, /* before the next try after a write that the API server dropped */
    PROGRESS_SLOW_MS = 3600000,   /* between two events about a slow rank */
};

/* The pod whose launcher to poll: pod 0 of a running job with torchrun. NULL: none. */
const struct pod *progress_pod(const struct plan_input *in);

/* Whether a plan would report something from a new answer. shown: the progress in the status. */
bool progress_is_news(const struct plan_progress *in, const struct jobprogress *shown, int64_t now_ms);

/* Set p->st.progress, and add the event about a slow rank. Call it after observe_job. */
void progress_observe(struct planner *p);

/* Whether to write the progress without any other change. If it is due later, it requests a plan at that
 * time. */
bool progress_is_due(struct planner *p);

#endif
