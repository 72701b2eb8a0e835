/* mounts.h - give pods of `kubectl ptj run` their volumes as folders of this machine. For the verb run.
 *
 * Nothing is mounted: in the command and in the job's variables a path on a volume becomes the path of its folder. A ConfigMap of the
 * manifest's file and an emptyDir are folders in a temporary one; --volume names the folder of any other volume. An emptyDir at
 * /dev/shm is this machine's /dev/shm.
 *
 * Ownership: what is written into pods lives in the arena. mounts_remove removes the temporary folder.
 * Errors:    ERR_INVALID: a volume without a folder, or a path that leads out of its volume. Those of writing.
 */
#ifndef TK_CLI_RUN_MOUNTS_H
#define TK_CLI_RUN_MOUNTS_H

#include "cli/args.h"
#include "cli/run/localpod.h"

struct mounts {
    const struct args *args; /* --volume NAME=FOLDER */
    const cJSON *entries;    /* the objects of the file (jobfile.h) */
    const struct trainjob *job;
    bool dry_run;    /* write nothing; mounts_apply names the paths that would change on stderr */
    char folder[64]; /* the temporary one; "": none was needed */
};

/* Check --volume: each names a volume of the job, and a folder. */
int mounts_check(const struct mounts *m, struct err *err) MUST_CHECK;

int mounts_apply(struct mounts *m, struct localpod *pod, struct arena *a, struct err *err) MUST_CHECK;

void mounts_remove(struct mounts *m);

#endif
