/* notes.h - lines of `kubectl ptj logs` itself, on stderr: stdout has the lines of the pods alone.
 *
 * notes prints each reason to wait once, until notes_forget.
 */
#ifndef TK_CLI_LOGS_NOTES_H
#define TK_CLI_LOGS_NOTES_H

#include "operator/api/pod.h"
#include "operator/api/trainjob.h"

struct notes {
    bool once; /* nothing is waited for: it says why there is no log */
    char said[512];
};

/* Why this pod does not run yet; why the job has no pods. */
void notes_wait_for_pod(struct notes *n, const struct pod *pod);
void notes_wait_for_job(struct notes *n, const struct jobstatus *st);

void notes_forget(struct notes *n);

#endif
