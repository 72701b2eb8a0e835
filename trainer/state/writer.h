/* writer.h - check and write one checkpoint at a time, in a thread beside the training; where no thread can be had, in the caller's.
 *
 * Ownership: writer_open starts the thread, writer_close waits until it has written its job, ends it and frees all. What
 *            a job points to is borrowed until the writer is idle again, and nobody may change it meanwhile.
 * Threads:   one thread calls these functions. The writer's own blocks all signals and has a nice value of WRITER_NICE more than
 *            the process, so that on busy cores the ranks' threads go first and it still gets a share.
 * Order:     writer_begin only when idle; writer_end takes the outcome before the next writer_begin.
 * fork:      a child has no writer's thread: it must exec or _exit, and close nothing.
 * Errors:    of a job: snapshot_check's and ckpt_dir.h's; the folder is then as it was.
 */
#ifndef TK_TRAINER_STATE_WRITER_H
#define TK_TRAINER_STATE_WRITER_H

#include "trainer/state/snapshot.h"

enum { WRITER_NICE = 10 };

struct writer_job {
    struct snapshot what;
    const char *dir;
    int64_t keep;
    struct manifest manifest; /* step, config, run id, launch, time */
};

/* Check and write, in the calling thread. What is not finite is not written. */
int writer_write(const struct writer_job *job, struct err *err) MUST_CHECK;

struct writer;

/* Never NULL. Without a thread *why says so, and writer_begin returns when the job is written. */
struct writer *writer_open(struct err *why);
bool writer_has_thread(const struct writer *w);
/* Accepts NULL. */
void writer_close(struct writer *w);

void writer_begin(struct writer *w, const struct writer_job *job);

/* Whether it is writing. It reads a flag, without a lock. */
bool writer_busy(const struct writer *w);

/* Wait until it is idle, timeout_ms at most (-1: without limit). Returns whether it is. */
bool writer_wait(struct writer *w, int64_t timeout_ms);

/* The outcome of the job that ended since the last call: false when none did. *ret: kind ERR_NONE, or why it failed. */
bool writer_end(struct writer *w, struct err *ret);

#endif
