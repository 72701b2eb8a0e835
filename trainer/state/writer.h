/* writer.h - a thread that checks and writes one checkpoint at a time, beside the training.
 *
 * Ownership: writer_open starts the thread, writer_close waits until it has written what it was given, ends it and frees all. What
 *            a job points to is borrowed until the writer is idle again, and nobody may change it meanwhile.
 * Threads:   one thread calls these functions. The writer's own blocks all signals and has a nice value of WRITER_NICE more than
 *            the process, so that on busy cores the ranks' threads go first and it still gets a share.
 * Order:     writer_begin only when idle; writer_end takes the outcome before the next writer_begin.
 * fork:      a child has no writer's thread: it must exec or _exit, and close nothing.
 * Errors:    writer_open: ERR_FATAL, no memory or no thread. Of a job: snapshot_check's and ckpt_dir.h's; the folder is then as it
 *            was.
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

/* NULL on failure. */
struct writer *writer_open(struct err *err);
void writer_close(struct writer *w);

void writer_begin(struct writer *w, const struct writer_job *job);

/* Is it writing? A look at a flag. */
bool writer_busy(const struct writer *w);

/* Wait until it is idle, timeout_ms at most (-1: as long as it takes). Is it? */
bool writer_wait(struct writer *w, int64_t timeout_ms);

/* The outcome of the job that ended since the last call: false when none did. *ret: kind ERR_NONE, or why it failed. */
bool writer_end(struct writer *w, struct err *ret);

#endif
