/* waiting.h - explain from a pod's status why it does not start. Pure.
 *
 * Ownership: strings are literals, live in the pass's arena or are borrowed from the pod.
 */
#ifndef TK_OPERATOR_PLAN_WAITING_H
#define TK_OPERATOR_PLAN_WAITING_H

#include "operator/plan/planner.h"

struct waiting {
    const char *reason; /* CamelCase; NULL: no problem is known */
    const char
        *subject; /* the claim or container in question, for the REASON column; NULL: clear, or not known */
    const char *message; /* without the pod's name; "" when reason is NULL */
};

struct waiting waiting_of(struct planner *p, const struct slot *s);

#endif
