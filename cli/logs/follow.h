/* follow.h - follow a job and its pods, print the merged lines of their logs, and end when the job has ended and all was printed.
 * For `kubectl ptj logs`.
 *
 * Memory:    64 pods at once take 28 MiB at most (merge.h, and 80 KiB and a connection for each), twice that while two attempts
 *            overlap; besides those what two watchers need (kube/watcher.h).
 * Errors:    a missing permission, with its name; a job that was deleted; output that cannot be written.
 */
#ifndef TK_CLI_LOGS_FOLLOW_H
#define TK_CLI_LOGS_FOLLOW_H

#include "cli/logs/merge.h"
#include "cli/logs/view.h"
#include "cli/ranks.h"
#include "cli/session.h"

enum { FOLLOW_PODS_MAX = MERGE_STREAMS / 2 };

struct follow_options {
    struct ranks ranks;
    int64_t tail, since_s; /* as in podlog.h */
    struct view view;
    const char *container; /* NULL: the training container */
    bool follow;           /* else what is there now */
};

/* `job` is taken. Returns the exit status: 0, and 1 if the job failed or a log could not be read; or -1. */
int follow_job(struct session *s, struct trainjob *job, const struct follow_options *o,
               struct err *err) MUST_CHECK;

#endif
