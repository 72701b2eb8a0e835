/* snapshot.h - write and read the files of a checkpoint. saver.c and resume.c call it.
 *
 * model.safetensors has the state_dict; optim.safetensors has the moments, by the parameters' names, and the
 * cursor. A GPT-2 also has a config.json.
 *
 * Ownership: the struct holds pointers to the caller's state, borrowed for the call. snapshot_read writes through
 *            them, and sets optim->step.
 * Threads:   check and write only read: the numbers of the snapshot, and names and shapes of its model. On a
 *            snapshot_copy another thread may call them while the model trains.
 * Errors:    those of ckpt_dir.h; ERR_INVALID for a checkpoint of another model or optimizer; the message
 *            names the tensor. A failed read changes nothing. */
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
     * After reading a checkpoint of another number of ranks, every entry is the mean. */
    double *sums;
    int n_sums;
    /* Write these instead of the model's values and buffers; NULL: the model's. */
    unsigned char *values, *buffers;
    /* optim's moments are a buffer on rank 0 that only session_gather changes, not the ones that training
     * updates */
    bool moments_gathered;
};

/* ERR_FATAL: a weight, float buffer or moment is not finite. The message names the tensor, or the optimizer's
 * state. A run that resumed from such a state would fail at once, each time. */
int snapshot_check(const struct snapshot *s, struct err *err) MUST_CHECK;

int snapshot_write(const struct snapshot *s, struct ckpt_writer *w, struct err *err) MUST_CHECK;

/* Read the checkpoint at `path`, whose manifest is m. */
int snapshot_read(const struct snapshot *s, const char *path, const struct manifest *m,
                  struct err *err) MUST_CHECK;

#endif
