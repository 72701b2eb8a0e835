/* progress_writer.h - leave a run's progress in the file CONTRACT_ENV_PROGRESS_FILE, which our launcher reads once a second
 * and the operator shows in the job's status.
 *
 * The file is one JSON object: step, totalSteps, epoch, totalEpochs, and loss and samplesPerSecond where they are known.
 * It is written in place, always with the same number of bytes.
 *
 * Ownership: progress_writer_open opens, progress_writer_close closes.
 * Errors:    ERR_FATAL where the file cannot be opened or is not a regular one. A write that fails is tried again a second
 *            later and not reported.
 */
#ifndef TK_TRAINER_RUN_PROGRESS_WRITER_H
#define TK_TRAINER_RUN_PROGRESS_WRITER_H

#include "common/cleanup.h"
#include "common/err.h"
#include "trainer/run/pace.h"

struct progress_writer {
    int fd; /* -1: there is no file */
    int64_t due_ms;
};

/* path NULL: there is no file, and the other functions do nothing. */
int progress_writer_open(struct progress_writer *w, const char *path, struct err *err) MUST_CHECK;

/* After every step: write the file if the last time is a second ago, or the step is the run's last. */
void progress_writer_step(struct progress_writer *w, int64_t now_ms, const struct pace_view *v);

void progress_writer_close(struct progress_writer *w);

#endif
