/* localpod.h - what a pod of a job would run, for a machine without a cluster: the argv and the environment that the operator's
 * plan gives its training container. Pure.
 *
 * The pods meet on loopback, and torchrun is the one of $PATH. Left out are the variables that belong to the cluster
 * (LOCALPOD_LEFT_OUT).
 *
 * Ownership: everything lives in the arena or in the job.
 * Errors:    ERR_INVALID: there is no command.
 */
#ifndef TK_CLI_RUN_LOCALPOD_H
#define TK_CLI_RUN_LOCALPOD_H

#include "cli/run/expand.h"
#include "common/contract.h"
#include "operator/api/trainjob.h"

/* The file of the container's termination message, and the port at which the operator polls the progress. */
#define LOCALPOD_LEFT_OUT CONTRACT_ENV_TERMINATION_LOG, CONTRACT_ENV_PROGRESS_PORT

struct localpod_variable {
    const char *name;
    const char *value; /* NULL: it has none here */
    const char
        *from; /* where a cluster would take it from: "key k of the secret s"; NULL: from the job itself */
};

struct localpod {
    const char *name;
    const char **argv; /* ends with NULL */
    struct localpod_variable *env;
    int n_env;
    const char *working_dir; /* in the container; NULL: its image's */
    const cJSON *spec;       /* of its template, in the job */
};

/* Pod number `order` (from 0, below job->spec.pods) of the job's first attempt. `shell`: what variables have here that only a
 * cluster knows. */
int localpod_make(const struct trainjob *job, int order, const struct expand_scope *shell, struct arena *a,
                  struct localpod *ret, struct err *err) MUST_CHECK;

/* The number of the pod with this type (NULL: the only one) and index; -1 with *err. */
int localpod_order(const struct trainjob *job, const char *type, int64_t index, struct err *err) MUST_CHECK;

/* Append the pod as a command for a shell; it may make the buffer `full` (buf.h). */
void localpod_print(const struct localpod *pod, struct buf *out);

#endif
