/* rules.h - what has to hold at every moment of every run, whatever went wrong: looked up in the history of the fake API
 * server, in which each change of each object stands.
 *
 * For each job (its namespace's pods that its UID controls):
 *   - one live pod at most for a type and an index, and none beside one of another attempt;
 *   - no pod is created after the job's end, or when it is gone;
 *   - attempt, restarts, backoffCount and disruptionCount never fall, and backoffCount stays within backoffLimit;
 *   - an end stays as it was, and is success or failure, not both;
 *   - no write of the status is sent that changes nothing;
 *   - what was answered with Retry-After is not asked again sooner by the same process (a client of direct.h), by the time of
 *     fake_set_time. Leases are left out: who renews one has until its deadline and no longer (kube/lease.c).
 */
#ifndef TK_TESTS_FAKES_RULES_H
#define TK_TESTS_FAKES_RULES_H

#include "tests/fakes/apiserver.h"

/* What may be left out, because somebody other than the operator breaks it in this test. */
enum fake_rules {
    FAKE_RULES_ALL = 0,
    FAKE_RULES_NO_PODS =
        1, /* a create took effect long after it was given up, or others make and remove pods */
    FAKE_RULES_NO_COUNTERS = 2, /* others write the status */
};

/* NULL: all well. The text is static and says which rule was broken; where, *ret_at: the change's place in the history
 * (fake_change_at), or -1. */
const char *fake_broken_rule(struct fake_apiserver *s, unsigned leave_out, int *ret_at);

#endif
