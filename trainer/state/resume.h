/* resume.h - find and load the checkpoint from which a run resumes. run/session_state.c calls it.
 *
 * Only rank 0 finds and reads the checkpoint, so no shared disk is needed. "auto" takes the newest valid
 * checkpoint in the folder of the run and its configuration, and warns about those that it skips. A path must
 * be loadable, else it is an error; of a folder with checkpoints of several runs, the last written one of
 * this configuration is taken.
 *
 * Order:     a collective call: every rank makes it.
 * Ownership: everything is borrowed for the call.
 * Errors:    ERR_INVALID or ERR_NOT_FOUND on rank 0: a path that cannot be used, or a checkpoint of this run
 *            that another version wrote; ERR_PEER then on the others; and those of the collectives.
 */
#ifndef TK_TRAINER_STATE_RESUME_H
#define TK_TRAINER_STATE_RESUME_H

#include "collectives/collectives.h"
#include "trainer/state/snapshot.h"

enum { RESUME_NOTES_MAX = 8 };

struct resume_options {
    const char *how; /* "auto", "never", or the path of a checkpoint or of a folder of them */
    const char *dir; /* --ckpt_dir, with the runs' folders */
    uint32_t config;
    const char *run_id;
    bool later_attempt; /* an earlier attempt of this run may have used this path */
    uint32_t launch;    /* as struct run_id's */
    int64_t timeout_ms;
};

struct resume_result {
    bool resumed;
    char run_id[MANIFEST_RUN_ID_BYTES]; /* on rank 0: the loaded checkpoint's, if it has this configuration */
    int notes;                          /* messages for the user, on rank 0 */
    struct {
        bool warning;
        char text[ERR_MSG_BYTES];
    } note[RESUME_NOTES_MAX];
};

/* Add a message for the user. */
void resume_note(struct resume_result *r, bool warning, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* Fill the cursor of `into`, and on rank 0 its model and optimizer, which the caller distributes; without a
 * checkpoint they are unchanged. */
int resume(const struct snapshot *into, struct collectives *comm, const struct resume_options *o,
           struct resume_result *ret, struct err *err) MUST_CHECK;

#endif
