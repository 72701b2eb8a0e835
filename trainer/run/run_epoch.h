/* run_epoch.h - functions that run.c, run_epoch.c, run_validate.c and run_checkpoint.c share. No other file includes it.
 *
 * Ownership: the session is borrowed.
 * Order:     run_epoch, run_checkpoint, run_last_checkpoint and run_settle are collective calls.
 * Errors:    those of the collectives; ERR_FATAL for a loss that is not finite.
 */
#ifndef TK_TRAINER_RUN_RUN_EPOCH_H
#define TK_TRAINER_RUN_RUN_EPOCH_H

#include "trainer/run/evaluate.h"
#include "trainer/run/session.h"

/* What is left of the cursor's epoch, or less of it: *stop says why, *ended whether it is over. */
int run_epoch(struct session *s, uint32_t *stop, bool *ended, struct err *err) MUST_CHECK;

/* --max_steps has been reached. */
bool run_has_all_steps(const struct session *s);

/* After a step: rank 0 reports the checkpoint that it has written, or could not write. `last`, here and below: for
 * run_last_checkpoint, which has words of its own for a success. */
void run_report_saves(struct session *s, bool last);

/* Save this step, which rank 0 has asked for when it was idle, or run_settle came first. The training goes on
 * meanwhile; rank 0 reports a failed write later. */
int run_checkpoint(struct session *s, bool last, struct err *err) MUST_CHECK;

/* Wait until rank 0 has written the checkpoint in progress. While rank 0 is alive, no rank's deadline applies. */
int run_settle(struct session *s, bool last, struct err *err) MUST_CHECK;

/* Save the step at which the run stops, when what is under way is written, and wait until that is written, too. */
int run_last_checkpoint(struct session *s, struct err *err) MUST_CHECK;

/* On rank 0, at the end: wait until all is written. The other ranks need not wait. */
void run_await_checkpoint(struct session *s);

/* What validates, or the test data: how many samples of *ret. */
int64_t run_part_of(const struct session *s, bool test, struct feed *ret);

/* Of an epoch of so many steps: is a validation due behind the cursor's? */
bool run_validates_now(const struct session *s, int64_t steps);

/* ERR_FATAL, the same on all ranks: an evaluation's loss is not finite, and what is wrong came with the last step. */
int run_check_loss(const struct session *s, const char *part, double loss, struct err *err) MUST_CHECK;

/* All ranks. *stop: it was interrupted. */
int run_validate(struct session *s, uint32_t *stop, struct err *err) MUST_CHECK;

/* Of models of sequences: rate, norm and tokens per second since the last call. */
void run_report_speed(struct session *s);

/* This rank's own line about an epoch (from 1). */
void run_print_epoch(struct session *s, int64_t epoch, const char *event, const char *text, double loss);

/* during: as report_stop. */
void run_print_stop(struct session *s, uint32_t stop, const char *during);

#endif
