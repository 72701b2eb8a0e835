/* run_epoch.h - functions that only run.c, run_epoch.c, run_validate.c and run_checkpoint.c use.
 *
 * Ownership: the session is borrowed.
 * Order:     run_epoch, run_checkpoint, run_last_checkpoint and run_settle are collective calls.
 * Errors:    those of the collectives; ERR_FATAL for a loss that is not finite.
 */
#ifndef TK_TRAINER_RUN_RUN_EPOCH_H
#define TK_TRAINER_RUN_RUN_EPOCH_H

#include "trainer/run/evaluate.h"
#include "trainer/run/session.h"

/* Train the rest of the cursor's epoch. *stop: the signals that ended it earlier; *ended: the epoch is
 * over. */
int run_epoch(struct session *s, uint32_t *stop, bool *ended, struct err *err) MUST_CHECK;

/* Whether --max_steps has been reached. */
bool run_has_all_steps(const struct session *s);

/* After a step: rank 0 reports a finished or failed checkpoint. `last`, here and below: called by
 * run_last_checkpoint, which reports a success itself. */
int run_report_saves(struct session *s, bool last, struct err *err) MUST_CHECK;

/* Save this step. Rank 0's writer must be idle: it requested this step when it was, or run_settle was called.
 * Training continues meanwhile; rank 0 reports a failed write later. */
int run_checkpoint(struct session *s, bool last, struct err *err) MUST_CHECK;

/* Wait until rank 0 has written the current checkpoint. While rank 0 is alive, no deadline applies. */
int run_settle(struct session *s, bool last, struct err *err) MUST_CHECK;

/* Wait for the current checkpoint; then save the step at which the run stops, and wait for it. */
int run_last_checkpoint(struct session *s, struct err *err) MUST_CHECK;

/* On rank 0, at the end: wait until the writer is idle. The other ranks need not wait. */
int run_await_checkpoint(struct session *s, struct err *err) MUST_CHECK;

/* Set *ret to the validation data or the test data; returns the number of samples. */
int64_t run_part_of(const struct session *s, bool test, struct feed *ret);

/* Whether a validation is due after the cursor's step, in an epoch of `steps` steps. */
bool run_validates_now(const struct session *s, int64_t steps);

/* ERR_FATAL, on all ranks alike: an evaluation's loss is not finite, because of the last step. */
int run_check_loss(const struct session *s, const char *part, double loss, struct err *err) MUST_CHECK;

/* Collective. *stop: the signals that interrupted it. */
int run_validate(struct session *s, uint32_t *stop, struct err *err) MUST_CHECK;

/* For models of sequences: report learning rate, norm and tokens per second since the last call. */
void run_report_speed(struct session *s);

/* Print this rank's line about an epoch (from 1). */
void run_print_epoch(struct session *s, int64_t epoch, const char *event, const char *text, double loss);

/* during: as report_stop. */
void run_print_stop(struct session *s, uint32_t stop, const char *during);

#endif
