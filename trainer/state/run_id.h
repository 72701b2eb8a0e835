/* run_id.h - the name of a run across its attempts: what "--resume auto" goes by.
 *
 * The operator's (PTJ_JOB_UID), else the launcher's (TORCHELASTIC_RUN_ID). torchrun says "none" where nobody chose one:
 * then it is a name of that launcher process, so that its restarts go on and the next launch begins afresh. Without a
 * launcher each start is a run of its own with a random name; only one that is told to go on from another such run's
 * checkpoint takes that run's name over.
 *
 * Errors: ERR_FATAL (the kernel gives no random numbers).
 */
#ifndef TK_TRAINER_STATE_RUN_ID_H
#define TK_TRAINER_STATE_RUN_ID_H

#include "common/cleanup.h"
#include "common/err.h"
#include "trainer/state/files/manifest.h"

#include <stdbool.h>

struct run_id {
    char text[MANIFEST_RUN_ID_BYTES];
    bool made_up;       /* for this one start */
    bool later_attempt; /* an earlier one under this name is possible: of a job of the operator always */
};

int run_id_find(char *(*get)(const char *name), struct run_id *ret, struct err *err) MUST_CHECK;

/* Go on under the name of the run whose checkpoint was taken, where both names are made up. */
void run_id_take_over(struct run_id *id, const char *of_checkpoint);

#endif
