/* snapshot.h - a run's state as the files of a checkpoint, and back.
 *
 * model.safetensors holds the state_dict, optim.safetensors the moments, by the parameters' names, and how far the run has come.
 * Beside those of a GPT-2 stands a config.json.
 *
 * Ownership: the struct holds pointers to the caller's state, borrowed for the call. snapshot_read writes through
 *            them, and sets optim->step.
 * Threads:   check and write read the numbers of the snapshot and the names and shapes of its model, and change nothing: of a
 *            snapshot_copy another thread may call them while the model is trained.
 * Errors:    those of ckpt_dir.h; ERR_INVALID for a checkpoint of another model or optimiser, naming the tensor. A read
 *            that fails has changed nothing.
 */
#ifndef TK_TRAINER_STATE_SNAPSHOT_H
#define TK_TRAINER_STATE_SNAPSHOT_H

#include "trainer/model/model.h"
#include "trainer/model/optim.h"
#include "trainer/state/cursor.h"
#include "trainer/state/files/ckpt_dir.h"

struct snapshot {
    struct model *model;
    struct optim *optim;
    struct cursor *cursor;
    /* [n_sums = 1 + world] losses of the epoch so far: sums[0] is the mean over the ranks, sums[1 + r] is rank r's.
     * Read from another number of ranks, every entry is the mean. */
    double *sums;
    int n_sums;
    /* To write in place of the model's values and buffers: a copy's. NULL: the model's own. */
    unsigned char *values, *buffers;
    /* optim's moments are rank 0's memory to gather them in, not those that training updates: only the next gathering
     * (session_gather) changes them */
    bool moments_gathered;
};

/* ERR_FATAL: a weight, float buffer or moment is not finite. The message names the tensor, or the optimizer's state.
 * A run that goes on from such a state ends at once, each time. */
int snapshot_check(const struct snapshot *s, struct err *err) MUST_CHECK;

int snapshot_write(const struct snapshot *s, struct ckpt_writer *w, struct err *err) MUST_CHECK;

/* From the checkpoint at `path`, whose manifest is m. */
int snapshot_read(const struct snapshot *s, const char *path, const struct manifest *m,
                  struct err *err) MUST_CHECK;

#endif
