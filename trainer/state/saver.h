/* saver.h - decide when a checkpoint is due (--save_steps, --save_seconds), and have it written beside the training.
 *
 * Rank 0 writes, from a copy of the state that is made between two steps. Its clock decides about --save_seconds; what it decides,
 * and that it is still writing the last one, is sent with a step's all_reduce (COLLECTIVES_SAVE, COLLECTIVES_WRITING), so that all
 * ranks save after the same step. One that is due meanwhile is put off until the first step after that.
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

    /* The same on all ranks: */
    bool
        beside; /* false: no thread, or no memory for a copy, so that a step waits until its checkpoint is written */
    bool put_off;       /* one has had to wait, which was told */
    bool due;           /* a checkpoint is due, */
    bool held;          /* and has to wait, because rank 0 was writing when it was asked last */
    int64_t begun_step; /* the last step that was to be saved; -1: none */
    int64_t heard_step; /* the newest step whose flags are known; -1: none */
    bool writing;       /* rank 0 was writing a checkpoint at that step */

    /* Rank 0's: */
    bool raised; /* COLLECTIVES_SAVE, since the last one was begun */
    struct writer *writer;
    struct snapshot_copy copy;
    bool ended; /* without a thread: there is an outcome */
    struct err outcome;
    struct err failed; /* the last failure that was told; kind ERR_NONE: the last one was written */
};

/* On rank 0: start the thread, and take memory for a copy of such a state if checkpoints are asked for on the way. -1: that could
 * not be had, and *why says what; the saver works all the same. */
int saver_open(struct saver *s, const struct snapshot *like, struct err *why) MUST_CHECK;
void saver_close(struct saver *s);

/* The flags that this rank raises with its next step. */
uint32_t saver_flags(struct saver *s);

/* Learn what was raised, after step `step` (of the run, from 1). `back`: the newest flags are those of so many steps ago, and
 * `flags` the union of all since the call before. True: this is the
 * first step of the run that was to be saved and is put off. */
bool saver_learn(struct saver *s, int64_t step, uint32_t flags, int back);

/* On all ranks: the state of this step is to be saved. Rank 0 has it written unless there is one of this step, the others do
 * nothing. `still`: nobody changes the state until it is written, which then takes no copy. The one before has to be written, and
 * its outcome taken. */
void saver_save(struct saver *s, const struct snapshot *what, bool still);

/* Wait until all is written, timeout_ms at most (-1: as long as it takes). Is it? */
bool saver_wait(struct saver *s, int64_t timeout_ms);

/* What has ended since the last call; a failure is `again` as long as all that failed since the last success did so for the same
 * reason. */
struct saver_outcome {
    int64_t step;
    struct err err; /* kind ERR_NONE: it is on disk */
    bool again;
};
bool saver_end(struct saver *s, struct saver_outcome *ret);

#endif
