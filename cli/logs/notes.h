/* notes.h - lines of `kubectl ptj logs` itself, on stderr: stdout has only the lines of the pods.
 *
 * notes prints each reason to wait once, until notes_forget.
 */
#ifndef TK_CLI_LOGS_NOTES_H
#define TK_CLI_LOGS_NOTES_H

#include "operator/api/pod.h"
#include "operator/api/trainjob.h"

struct notes {
    bool once;         /* logs does not wait: the notes explain why there is no log */
    char printed[512]; /* the reasons */
};

/* Why this pod does not run yet; why the job has no pods. */
void notes_wait_for_pod(struct notes *n, const struct pod *pod);
void notes_wait_for_job(struct notes *n, const struct jobstatus *st);

void notes_forget(struct notes *n);

#endif
