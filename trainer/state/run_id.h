/* run_id.h - the id of a run, the same in all its attempts: "--resume auto" resumes only checkpoints of the same id.
 *
 * The operator's (PTJ_JOB_UID), else the launcher's (TORCHELASTIC_RUN_ID). torchrun's default is "none":
 * then the id is that of the launch, so that its restarts resume and the next launch starts afresh. Without a
 * launcher each start is a run of its own with a random id; one that resumes from another such run's checkpoint, of the
 * same configuration, takes over that run's id when that run has ended.
 *
 * Errors: ERR_FATAL (run_id_find: the kernel gives no random numbers).
 */
#ifndef TK_TRAINER_STATE_RUN_ID_H
#define TK_TRAINER_STATE_RUN_ID_H

#include "common/cleanup.h"
#include "common/err.h"
#include "trainer/state/files/manifest.h"

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

struct run_id {
    char text[MANIFEST_RUN_ID_BYTES];
    bool made_up;       /* for this one start */
    bool later_attempt; /* an earlier one under this name is possible: of a job of the operator always */
    uint32_t launch;    /* a hash that tells this launch from others on this node; 0: not known */
};

int run_id_find(char *(*get)(const char *name), struct run_id *ret, struct err *err) MUST_CHECK;

/* The folder in --ckpt_dir of a run's checkpoints of one configuration, so that a script that trains twice has two. It is called by the id
 * where that is a plain name, else by a hash of it, and by the hash of the configuration. ERR_INVALID: its path is too long. */
enum { RUN_ID_PLAIN_BYTES = 128 };
int run_id_dir(const char *ckpt_dir, const char *id, uint32_t config, char out[static PATH_MAX],
               struct err *err) MUST_CHECK;

/* Take over the id of the run whose checkpoint was loaded ("": none was), if both ids are random. Returns whether they are. */
bool run_id_take_over(struct run_id *id, const char *of_checkpoint);

#endif
