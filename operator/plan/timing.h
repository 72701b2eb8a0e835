/* timing.h - compute the waits that a plan ends, for the latency histograms of /metrics. Pure. */
#ifndef TK_OPERATOR_PLAN_TIMING_H
#define TK_OPERATOR_PLAN_TIMING_H

#include "operator/plan/planner.h"

/* Set out->waits from the old status, the new one and the plan's actions. */
void timing_note(const struct planner *p, struct plan *out);

#endif
