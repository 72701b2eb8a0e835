/* progress_writer.h - write a run's progress to the file CONTRACT_ENV_PROGRESS_FILE, which our launcher reads
 * once a second and the operator shows in the job's status. report.c calls it.
 *
 * The file is one JSON object: step, totalSteps, epoch, totalEpochs, and loss and samplesPerSecond if known.
 * It is written in place, always with the same number of bytes.
 *
 * Ownership: progress_writer_open opens, progress_writer_close closes.
 * Errors:    ERR_FATAL: the file cannot be opened or is not regular. A failed write is repeated a second
 *            later, without an error. */
#ifndef TK_TRAINER_RUN_PROGRESS_WRITER_H
#define TK_TRAINER_RUN_PROGRESS_WRITER_H

#include "common/cleanup.h"
#include "common/err.h"
#include "trainer/run/pace.h"

struct progress_writer {
    int fd; /* -1: no file */
    int64_t due_ms;
};

/* path NULL: no file, and the other functions do nothing. */
int progress_writer_open(struct progress_writer *w, const char *path, struct err *err) MUST_CHECK;

/* After every step: write the file if the last write was a second ago, or the step is the run's last. */
void progress_writer_step(struct progress_writer *w, int64_t now_ms, const struct pace_view *v);

void progress_writer_close(struct progress_writer *w);

#endif
