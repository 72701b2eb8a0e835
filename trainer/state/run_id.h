/* run_id.h - the id of a run, the same in all its attempts: "--resume auto" uses only checkpoints with this
 * id. run/session_state.c calls it.
 *
 * It is the operator's (PTJ_JOB_UID), else the launcher's (TORCHELASTIC_RUN_ID). torchrun's default is
 * "none": then the id identifies the launch, so that its restarts resume and the next launch starts afresh.
 * Without a launcher each start is a new run with a random id. If such a run resumes from another one's
 * checkpoint, with the same configuration, it takes over that id once the other run has ended.
 *
 * Errors: ERR_FATAL (run_id_find: the kernel gives no random numbers).
 */
#ifndef TK_TRAINER_STATE_RUN_ID_H
#define TK_TRAINER_STATE_RUN_ID_H

#include "common/cleanup.h"
#include "common/err.h"
#include "trainer/state/files/attempt_mark.h"
#include "trainer/state/files/manifest.h"

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

struct run_id {
    char text[MANIFEST_RUN_ID_BYTES];
    bool made_up;       /* random, for this start */
    bool later_attempt; /* an earlier attempt with this id is possible; in a job of the operator always */
    uint32_t launch;    /* a hash that identifies this launch on this node; 0: not known */
    struct attempt_mark mark; /* of the job's attempt, not taken yet */
};

int run_id_find(char *(*get)(const char *name), struct run_id *ret, struct err *err) MUST_CHECK;

/* The folder in --ckpt_dir for a run's checkpoints of one configuration (a script that trains twice has two).
 * Its name is the id, or a hash if the id is not a plain name, and the hash of the configuration.
 * ERR_INVALID: its path is too long. */
enum { RUN_ID_PLAIN_BYTES = 128 };
int run_id_dir(const char *ckpt_dir, const char *id, uint32_t config, char out[static PATH_MAX],
               struct err *err) MUST_CHECK;

/* Take over the id of the run whose checkpoint was loaded ("": none), if both ids are random; returns whether
 * it did. */
bool run_id_take_over(struct run_id *id, const char *of_checkpoint);

#endif
