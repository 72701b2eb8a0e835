/* mend.h - a status that was edited, or written under a wrong clock. Counts and lists out of bounds are lost when it is
 * read (jobstatus.h); here is what needs the time or the rest of the status. Pure. */
#ifndef TK_OPERATOR_PLAN_MEND_H
#define TK_OPERATOR_PLAN_MEND_H

#include "operator/plan/planner.h"

/* Times far ahead become now; an end of which a part is missing is made whole. */
void mend_status(struct planner *p);

/* `ms`, or now where it lies too far ahead. */
int64_t mend_time(const struct planner *p, int64_t ms);

#endif
