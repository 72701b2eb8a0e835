/* mounts.h - give pods of `kubectl ptj run` their volumes as folders of this machine. For the verb run.
 *
 * Nothing is mounted: in the command and in the job's variables a path on a volume becomes the path of its folder. A ConfigMap of the
 * manifest's file and an emptyDir are folders in a temporary one; --volume names the folder of any other volume. An emptyDir at
 * /dev/shm is this machine's /dev/shm.
 *
 * Ownership: what is written into pods lives in the arena. mounts_remove removes the temporary folder, or
 *            names it on stderr.
 * Errors:    ERR_INVALID: a volume without a folder, a path that leads out of its volume, a ConfigMap that is none. Those of writing.
 */
#ifndef TK_CLI_RUN_MOUNTS_H
#define TK_CLI_RUN_MOUNTS_H

#include "cli/args.h"
#include "cli/run/localpod.h"

#include <limits.h>

struct mounts {
    const struct args *args; /* --volume NAME=FOLDER */
    const cJSON *entries;    /* the objects of the file (jobfile.h) */
    const struct trainjob *job;
    bool dry_run;          /* write nothing; mounts_apply names the paths that would change on stderr */
    bool refused;          /* a dry run has named a volume for which a run ends with an error */
    char folder[PATH_MAX]; /* the temporary one, in $TMPDIR or /tmp; "": none was needed */
};

/* Check --volume: each names a volume of the job, and a folder. */
int mounts_check(const struct mounts *m, struct err *err) MUST_CHECK;

int mounts_apply(struct mounts *m, struct localpod *pod, struct arena *a, struct err *err) MUST_CHECK;

void mounts_remove(struct mounts *m);

#endif
