/* saver.h - decide when a checkpoint is due (--save_steps, --save_seconds), and have it written beside the training.
 *
 * Rank 0 writes, from a copy of the state that is made between two steps. Its clock decides about --save_seconds; what it decides,
 * and that it is still writing the last one, is sent with a step's all_reduce (COLLECTIVES_SAVE, COLLECTIVES_WRITING), so that all
 * ranks save after the same step. A checkpoint that is due meanwhile is deferred until the first step after that.
 *
 * Memory:    on rank 0, from saver_open on: snapshot_copy_bytes.
 * Ownership: strings are borrowed. saver_close waits for the write under way, then frees. A struct without a `dir` never saves.
 * Errors:    those of writer.h: the training continues without the checkpoint.
 */
#ifndef TK_TRAINER_STATE_SAVER_H
#define TK_TRAINER_STATE_SAVER_H

#include "common/clock.h"
#include "trainer/state/snapshot_copy.h"
#include "trainer/state/writer.h"

struct saver {
    const char *dir;
    int64_t save_steps; /* 0: not by steps */
    int64_t save_ms;    /* 0: not by time */
    int64_t keep;
    uint32_t config; /* see manifest.h */
    const char *run_id;
    uint32_t launch;
    int rank;
    struct clock clock;
    int64_t last_ms;   /* of the clock, when the last one was begun */
    int64_t last_step; /* the step of the newest one on disk; -1: none of this process */

    /* The same on all ranks. asynchronous: false without a thread, or without memory for a copy: then a step waits until its
     * checkpoint is written. deferred: the checkpoint that is due has to wait, since rank 0 was writing at the newest step
     * whose flags are known. deferral_told: saver_learn has returned true. */
    bool asynchronous, due, deferred, deferral_told;
    int64_t saved_step; /* the last step that saver_save was called for; -1: none */
    int64_t flags_step; /* the newest step whose flags are known; -1: none */
    bool writing;       /* rank 0 was writing a checkpoint at that step */

    /* Rank 0's: */
    bool requested; /* it has sent COLLECTIVES_SAVE since the last saver_save */
    struct writer *writer;
    struct snapshot_copy copy;
    struct err failed; /* why the last checkpoint failed; kind ERR_NONE: it was written */
};

/* On rank 0: start the thread, and allocate memory for a copy of a state of this shape if checkpoints are wanted before the end.
 * -1: there is no thread or no memory, *why says which, and `asynchronous` is false. */
int saver_open(struct saver *s, const struct snapshot *shape, struct err *why) MUST_CHECK;
void saver_close(struct saver *s);

/* The flags that this rank sends with its next step. */
uint32_t saver_flags(struct saver *s);

/* Set `due` and `deferred` after step `step` (of the run, from 1). `flags`: the union of the flags of all ranks and steps since the
 * last call; the newest of those steps was `back` steps ago. True: this is the run's first deferral, which is worth a message. */
bool saver_learn(struct saver *s, int64_t step, uint32_t flags, int back);

/* On all ranks: save the state of this step. Rank 0 has it written, unless a checkpoint of this step exists; the others only note
 * the step. `unchanging`: nobody changes the state until it is written, so no copy is made. The checkpoint before it has to be
 * written, and its outcome taken by saver_end. */
void saver_save(struct saver *s, const struct snapshot *what, bool unchanging);

/* Wait until nothing is being written, timeout_ms at most (-1: without limit). Returns whether that is so. */
bool saver_wait(struct saver *s, int64_t timeout_ms);

/* How a checkpoint ended. */
struct saver_outcome {
    int64_t step;
    struct err err;   /* kind ERR_NONE: it is on disk */
    bool same_reason; /* it failed for the same reason as the one before it */
};

/* The outcome of the checkpoint that has ended since the last call; false: none has. */
bool saver_end(struct saver *s, struct saver_outcome *ret);

#endif
