/* saver.h - decide when a checkpoint is due (--save_steps, --save_seconds), and write it in a thread. run/
 * calls it.
 *
 * Only rank 0 decides, and it writes a copy of the state that it makes between two steps. It requests a
 * checkpoint with a flag of a step's all_reduce (COLLECTIVES_SAVE), so that all ranks gather their parts
 * after the same step. While it writes, it requests none; one that becomes due meanwhile is requested with
 * the first step after that.
 *
 * Memory:    on rank 0, snapshot_copy_bytes from saver_open on.
 * Ownership: strings are borrowed. saver_close waits for the writer, then frees. With dir NULL it never
 *            saves.
 * Threads:   one thread calls these functions; the struct must not move after saver_open. The writer thread
 *            blocks all signals. Its nice value is SAVER_NICE above the process's, so that on busy cores the
 *            ranks' threads have priority and it still gets a share. If no thread can be started, the
 *            caller's thread writes.
 * fork: a child does not have the thread: it must exec or _exit, and must not call saver_close.
 * Errors:    of a checkpoint: those of snapshot_check and ckpt_dir.h; the folder is then unchanged, and the
 *            training continues, but after ERR_PEER: another attempt has taken over. */
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
    struct attempt_mark mark; /* from saver_open on the writer's */
    int rank;
    bool
        locks; /* lock the folder from the first checkpoint until saver_close, so that no other run without a job takes it over */
    int lock_fd; /* result of ckpt_lock; 0: not locked */
    struct clock clock;
    int64_t last_ms;   /* when the last checkpoint was begun */
    int64_t last_step; /* step of the newest checkpoint on disk; -1: none by this process */

    /* Equal on all ranks. asynchronous: false without a thread or memory for a copy: then a step waits until
     * its checkpoint is written. wanted: rank 0 has requested a checkpoint of this step. */
    bool asynchronous, wanted;

    /* Rank 0's: */
    bool due, requested; /* a checkpoint is due; it has been requested from all ranks */
    bool open, has_thread;
    struct snapshot_copy copy;
    struct snapshot what; /* the state being written, with the manifest below */
    struct manifest manifest;
    struct err outcome, before; /* of the last checkpoint and of the one before; kind ERR_NONE: written */
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    enum {
        SAVER_IDLE,
        SAVER_WRITES,
        SAVER_ENDED,
        SAVER_CLOSES
    } _Atomic phase; /* ENDED: saver_end has not returned the outcome yet */
};

/* On rank 0: start the thread, and allocate memory for a copy of a state of this shape, if checkpoints before
 * the end are requested. -1: no thread or no memory (*why), and `asynchronous` is false. */
int saver_open(struct saver *s, const struct snapshot *shape, struct err *why) MUST_CHECK;
void saver_close(struct saver *s);

/* The flags that this rank sends with step `step` (of the run, from 1). */
uint32_t saver_flags(struct saver *s, int64_t step);

/* Save the state of this step, unless a checkpoint of it exists. `unchanging`: the state does not change
 * until it is written, so no copy is made. The previous checkpoint must be written, and saver_end must have
 * returned its outcome. */
void saver_save(struct saver *s, const struct snapshot *what, bool unchanging);

/* Wait until the writer is idle, at most timeout_ms (-1: no limit). Returns whether it is. */
bool saver_wait(struct saver *s, int64_t timeout_ms);

/* The result of a checkpoint. */
struct saver_outcome {
    int64_t step;
    struct err err;   /* kind ERR_NONE: it is on disk */
    bool same_reason; /* it failed for the same reason as the previous one */
};

/* Get the outcome of a checkpoint that has ended since the last call; false: none has. */
bool saver_end(struct saver *s, struct saver_outcome *ret);

#endif
