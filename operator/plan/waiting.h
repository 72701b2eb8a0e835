/* waiting.h - why a pod does not start, as far as its own status tells. Pure.
 *
 * Ownership: strings are literals, live in the pass's arena or are borrowed from the pod.
 */
#ifndef TK_OPERATOR_PLAN_WAITING_H
#define TK_OPERATOR_PLAN_WAITING_H

#include "operator/plan/planner.h"

struct waiting {
    const char *reason; /* CamelCase; NULL: nothing is wrong that one can see */
    const char *
        subject; /* the claim or init container meant, for the REASON column; NULL: it is clear or not known */
    const char *message; /* without the pod's name; "" when reason is NULL */
};

struct waiting waiting_of(struct planner *p, const struct slot *s);

#endif
