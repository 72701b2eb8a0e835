/* phases.h - how many jobs are in which phase, by namespace, with a bound on the namespaces that are named. Pure.
 *
 * Ownership: borrows the jobs for the call; the result lives in the arena and borrows the namespaces' names from the jobs.
 * Order:     the namespaces with most jobs first, and of those with equally many by name; all others are one row at the end,
 *            with the namespace "", which no job has.
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

/* `jobs` holds struct jobtext. At most PHASES_NAMESPACES + 1 rows. */
const struct phases_row *phases_count(const struct kube_store *jobs, struct arena *a, size_t *ret_n);

#endif
