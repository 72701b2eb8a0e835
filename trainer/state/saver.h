/* saver.h - decide when a checkpoint is due (--save_steps, --save_seconds), and write it in a thread beside the training.
 *
 * Rank 0 alone decides, and writes from a copy of the state that is made between two steps. It asks for a checkpoint with a step's
 * all_reduce (COLLECTIVES_SAVE), so that all ranks bring their parts after the same step, and asks for none while it writes another: what
 * is due then is asked for with the first step after that.
 *
 * Memory:    on rank 0, from saver_open on: snapshot_copy_bytes.
 * Ownership: strings are borrowed. saver_close waits for the write under way, then frees. A struct without a `dir` never saves.
 * Threads:   one thread calls these functions, and the struct stays where it is from saver_open on. The thread that writes blocks all
 *            signals and has a nice value of SAVER_NICE more than the process, so that on busy cores the ranks' threads go first and
 *            it still gets a share. Where no thread can be had the caller's writes.
 * fork:      a child has no such thread: it must exec or _exit, and close nothing.
 * Errors:    of a checkpoint: snapshot_check's and ckpt_dir.h's; the folder is then as it was, and the training continues.
 */
#ifndef TK_TRAINER_STATE_SAVER_H
#define TK_TRAINER_STATE_SAVER_H

#include "common/clock.h"
#include "trainer/state/snapshot_copy.h"

#include <pthread.h>

enum { SAVER_NICE = 10 };

struct saver {
    const char *dir;
    int64_t save_steps; /* 0: not by steps */
    int64_t save_ms;    /* 0: not by time */
    int64_t keep;
    uint32_t config; /* see manifest.h */
    const char *run_id;
    uint32_t launch;
    int rank;
    bool
        locks; /* the folder, from the first checkpoint until saver_close: no other run by hand takes it over meanwhile */
    int lock_fd; /* of ckpt_lock; 0: not yet */
    struct clock clock;
    int64_t last_ms;   /* of the clock, when the last one was begun */
    int64_t last_step; /* the step of the newest one on disk; -1: none of this process */

    /* The same on all ranks. asynchronous: false without a thread, or without memory for a copy: then a step waits until its
     * checkpoint is written. wanted: rank 0 has asked, and this step is to be saved. */
    bool asynchronous, wanted;

    /* Rank 0's: */
    bool due, requested; /* a checkpoint; and all ranks have been asked for it */
    bool open, has_thread;
    struct snapshot_copy copy;
    struct snapshot what; /* is written, as the checkpoint of this manifest */
    struct manifest manifest;
    struct err outcome, before; /* of this and of the one before; kind ERR_NONE: it was written */
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    enum {
        SAVER_IDLE,
        SAVER_WRITES,
        SAVER_ENDED,
        SAVER_CLOSES
    } _Atomic phase; /* ENDED: nobody has taken the outcome */
};

/* On rank 0: start the thread, and allocate memory for a copy of a state of this shape if checkpoints are wanted before the end.
 * -1: there is no thread or no memory, *why says which, and `asynchronous` is false. */
int saver_open(struct saver *s, const struct snapshot *shape, struct err *why) MUST_CHECK;
void saver_close(struct saver *s);

/* The flags that this rank sends with step `step` (of the run, from 1). */
uint32_t saver_flags(struct saver *s, int64_t step);

/* Save the state of this step: rank 0 has it written, unless a checkpoint of this step exists. `unchanging`: nobody changes the state
 * until it is written, so no copy is made. The checkpoint before it has to be written, and its outcome taken by saver_end. */
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
