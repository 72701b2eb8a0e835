/* jobwatch.h - watch one job and its pods, decoded. For `kubectl ptj logs`.
 *
 * Ownership: the sink is copied; a job is given away, a pod and a UID are borrowed for the call.
 * Errors:    a missing right is `fatal`, named; all else is tried again, and told to `lost`.
 * Order:     that of kube/reflector.h: what was not named between pods_begin and pods_end is gone.
 */
#ifndef TK_CLI_LOGS_JOBWATCH_H
#define TK_CLI_LOGS_JOBWATCH_H

#include "cli/session.h"
#include "operator/api/pod.h"
#include "operator/api/trainjob.h"

struct jobwatch;

struct jobwatch_sink {
    void *ctx;
    void (*job)(void *ctx, struct trainjob *job);
    void (*job_gone)(void *ctx);
    void (*pods_begin)(void *ctx);
    void (*pods_end)(void *ctx);
    void (*pod)(void *ctx, const struct pod *pod);
    void (*pod_gone)(void *ctx, const char *uid);
    void (*lost)(void *ctx, const struct err *err);
    void (*fatal)(void *ctx, const struct err *err);
};

struct jobwatch *jobwatch_new(struct session *s, const char *job, const struct jobwatch_sink *sink);

/* List the pods anew: what comes next is pods_begin, and the state is not older than this call. Not from a callback of a pod. */
void jobwatch_list_pods(struct jobwatch *w);
void jobwatch_free(struct jobwatch *w);

#endif
