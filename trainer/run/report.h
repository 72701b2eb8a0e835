/* report.h - write a run's output: text or JSON lines, a bar on a terminal (bar.h), TensorBoard scalars.
 * run*.c and session.c call it.
 *
 * Rank 0 has one; on the other ranks it is NULL, with which every function does nothing.
 * Ownership: report_open to report_close, which flushes. The streams are borrowed.
 * Order:     do not call these functions inside a step.
 * Errors:    report_open and report_close: ERR_FATAL if the event file cannot be written. In between, a full
 *            disk does not stop the training: events stay in memory and report_close tries again.
 */
#ifndef TK_TRAINER_RUN_REPORT_H
#define TK_TRAINER_RUN_REPORT_H

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/err.h"
#include "trainer/cli/config.h"
#include "trainer/model/model.h"

#include <stdio.h>

struct report;

struct report_options {
    FILE *out;
    FILE *bar; /* a terminal; NULL: no bar */
    enum log_format format;
    bool own_lines;   /* the preset prints its own lines: no start line, and steps only with --log_interval */
    bool steps_asked; /* --log_interval was given */
    const char *log_dir;  /* NULL: no events */
    const char *progress; /* path of the progress file; NULL: none. If it cannot be opened: a warning */
    int64_t epochs;
    int64_t steps;            /* of an epoch */
    int64_t max_steps;        /* of the run; 0: no limit */
    int64_t samples_per_step; /* of all ranks */
    int64_t
        resumed_step; /* step of the run from which it resumes; -1: a fresh start, which removes event files of ended runs */
    bool later_attempt; /* of a job: an earlier one may still write to log_dir, so readers drop its events */
    struct clock clock;
};

struct report *report_open(const struct report_options *o, struct err *err) MUST_CHECK;

struct report_times {
    int64_t samples; /* that all ranks have trained on */
    double train_s;  /* in steps */
    double val_s;    /* in evaluations between epochs */
    double met_s,
        data_s; /* from the program's start until the ranks were connected, until the data were loaded */
    double startup_s; /* from the program's start to the first step */
    bool data_kept;   /* an earlier attempt under this launcher had decoded the data (pod_data.h) */
};

/* Write one line before the first step: model, ranks, batch, device, precision, threads; in JSON also met_s,
 * data_s and data_kept of *t. */
void report_start(struct report *r, const struct config *cfg, size_t parameters, int world,
                  const char *transport, const char *isa, int threads, const struct report_times *t);

/* Write a note or a warning that does not end the run. */
void report_note(struct report *r, bool warning, const char *text);

/* Begin or continue an epoch of `steps` steps, after `first_step` steps of the run. The functions below refer
 * to it. */
void report_epoch(struct report *r, int64_t first_step, int64_t steps);

/* Steps and epochs count from 1. */
void report_step(struct report *r, int64_t epoch, int64_t step, double loss);

/* Numbers for a model of sequences, in addition to its loss. NaN: not known. */
struct report_speed {
    double lr, grad_norm, tokens_per_s;
};
void report_speed(struct report *r, int64_t step, const struct report_speed *v);

/* Write one of the preset's own lines to `out`, on any rank; r may be NULL. In JSON, rank 0 writes `event`
 * instead, with the epoch, and with the loss unless it is NaN. */
void report_line(struct report *r, FILE *out, enum log_format format, const char *event, const char *text,
                 const struct lines_values *v);

/* After every step: redraw the bar, write the progress file and events, each if due. */
void report_progress(struct report *r, int64_t epoch, int64_t step, double loss);

/* Erase the bar until the next step, before other output to the terminal. */
void report_hide(struct report *r);

/* Report a validation or test after a step; accuracy NaN: none. */
void report_val(struct report *r, int64_t epoch, int64_t step, double loss, double accuracy);
void report_test(struct report *r, int64_t global_step, double loss, double accuracy);

/* Write the weights as histograms, if there is an event file. */
void report_histograms(struct report *r, const struct model *m, int64_t global_step);

void report_times(struct report *r, const struct report_times *t);

/* Report a checkpoint of step `step` of the run. The text format prints it only with `last`, and with `hint`
 * how to use it. */
void report_checkpoint(struct report *r, const char *dir, int64_t step, bool last, bool hint);

/* Report why the run ends early. during: "validation" or "test"; NULL: a training step. */
void report_stop(struct report *r, const char *signal_name, const char *during, int64_t epoch, int64_t step);

int report_close(struct report *r, struct err *err);

#endif
