/* phases.h - count the jobs in each phase by namespace, for at most PHASES_NAMESPACES named namespaces. Pure.
 *
 * Ownership: borrows the jobs for the call; the result lives in the arena and borrows the namespaces' names
 *            from the jobs.
 * Order:     the namespaces with most jobs first, equal ones by name. The last row is the sum of all other
 *            namespaces, under the name "", which no job has.
 */
#ifndef TK_OPERATOR_PHASES_H
#define TK_OPERATOR_PHASES_H

#include "kube/store.h"
#include "operator/api/jobtext.h"

enum { PHASES_NAMESPACES = 100 };

struct phases_row {
    const char *ns;
    size_t jobs;
    size_t by_phase[JOB_PHASES];
};

/* The values of `jobs` are struct jobtext. Returns at most PHASES_NAMESPACES + 1 rows. */
const struct phases_row *phases_count(const struct kube_store *jobs, struct arena *a, size_t *ret_n);

#endif
