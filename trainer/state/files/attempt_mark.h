/* attempt_mark.h - a folder .attempt-N in a run's folder: attempt N of the job writes checkpoints there, and no
 * other attempt does. ckpt_dir.c, saver.c and run/ use it.
 *
 * A pod on a node that is cut off goes on training, and its job's next attempt writes to the same folder. An
 * attempt creates its mark, and only then looks for other marks: it stops if a newer one exists, and renames
 * older ones. Its writer fills each checkpoint inside of its mark, and renames it from there into the run's
 * folder. So the rename of an attempt that has lost its mark fails, wherever it was when it lost it: there is
 * no moment between a check and a rename. A file server decides both, whatever its clients have cached. An
 * attempt reads the checkpoints after it has taken its mark, so none appears behind its back.
 *
 * A lower attempt may also be the later one: somebody has cleared the job's status. Its first launch stops and
 * leaves a folder in the newer mark, which the owner of that mark removes when it writes. If it is still there,
 * the next launch of a lower attempt takes over.
 *
 * Errors: ERR_PEER (another attempt writes here: this one stops), ERR_FATAL (cannot write or read). */
#ifndef TK_TRAINER_STATE_FILES_ATTEMPT_MARK_H
#define TK_TRAINER_STATE_FILES_ATTEMPT_MARK_H

#include "common/cleanup.h"
#include "common/err.h"

#include <stdbool.h>
#include <stdint.h>

enum { ATTEMPT_MAX = 999999999, ATTEMPT_NAME_BYTES = 32 };

struct attempt_mark {
    bool known;      /* false: a run without attempts, which has no mark */
    int number;      /* the job's attempt */
    uint32_t launch; /* see run_id.h */
    bool held;       /* the mark was taken */
};

void attempt_mark_name(const struct attempt_mark *m, char out[static ATTEMPT_NAME_BYTES]);

/* Take the mark in the open folder, or check that it is still there; `dir` is its path, for
 * messages. Without an attempt it does nothing. */
int attempt_mark_take(struct attempt_mark *m, int folder, const char *dir, struct err *err) MUST_CHECK;

#endif
