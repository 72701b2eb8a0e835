/* saver.h - decide when a checkpoint is due (--save_steps, --save_seconds), and write it.
 *
 * Rank 0 writes. Its clock decides about --save_seconds; the decision is sent with a step's all_reduce
 * (COLLECTIVES_SAVE), so that all ranks save at the same step.
 *
 * Ownership: strings are borrowed. A zeroed struct never saves.
 * Errors:    those of ckpt_dir.h: the training continues without the checkpoint.
 */
#ifndef TK_TRAINER_STATE_SAVER_H
#define TK_TRAINER_STATE_SAVER_H

#include "common/clock.h"
#include "trainer/state/snapshot.h"

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
    int64_t last_ms;   /* of the clock, when the last one was written, or tried */
    int64_t last_step; /* the step of the newest one on disk; -1: none of this process */
};

/* The flags that this rank raises with its next step. */
uint32_t saver_flags(const struct saver *s);

/* Is one due after step `step` (of the run, from 1), whose all_reduce brought `flags`? */
bool saver_due(const struct saver *s, int64_t step, uint32_t flags);

/* On rank 0: write one, unless there is one of this step. On others nothing. */
int saver_save(struct saver *s, const struct snapshot *what, struct err *err) MUST_CHECK;

#endif
