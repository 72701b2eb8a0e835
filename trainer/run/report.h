/* report.h - write a run's output: text or JSON lines, a bar on a terminal (bar.h), TensorBoard scalars.
 *
 * Rank 0 has one; on the others it is NULL, and every function accepts NULL and does nothing.
 * Ownership: report_open makes, report_close flushes and frees. The streams are borrowed.
 * Order:     nothing here is called inside a step.
 * Errors:    ERR_FATAL from report_open and report_close when the event file cannot be written. In between a
 *            full disk does not stop the training: events wait in memory and report_close tries again.
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
    bool own_lines;       /* the preset's own: none here about the start, and steps only when asked for */
    bool steps_asked;     /* ... by --log_interval */
    const char *log_dir;  /* NULL: no events */
    const char *progress; /* path of the progress file; NULL: none. One that cannot be opened is a warning */
    int64_t epochs;
    int64_t steps;            /* of an epoch */
    int64_t max_steps;        /* of the run; 0: those of its epochs */
    int64_t samples_per_step; /* of all ranks */
    int64_t
        resumed_step; /* of the run, where it goes on; -1: a fresh start, which removes event files of ended runs */
    struct clock clock;
};

struct report *report_open(const struct report_options *o, struct err *err) MUST_CHECK;

struct report_times {
    int64_t samples;      /* trained on, all ranks */
    double train_s;       /* in steps */
    double val_s;         /* in evaluations between epochs */
    double met_s, data_s; /* from the program's start until the ranks had met, until the data were there */
    double startup_s;     /* from the program's start to the first step */
    bool data_kept;       /* an earlier attempt under this launcher had decoded the data (pod_data.h) */
};

/* Write one line before the first step: model, ranks, batch, device, precision, threads; in JSON met_s, data_s
 * and data_kept of *t too. */
void report_start(struct report *r, const struct config *cfg, size_t parameters, int world,
                  const char *transport, const char *isa, int threads, const struct report_times *t);

/* Write a note or a warning that does not end the run. */
void report_note(struct report *r, bool warning, const char *text);

/* An epoch begins, or goes on: it has `steps` steps, `first_step` of the run came before the first of them. All below is in it. */
void report_epoch(struct report *r, int64_t first_step, int64_t steps);

/* Steps and epochs count from 1. */
void report_step(struct report *r, int64_t epoch, int64_t step, double loss);

/* Figures of a model of sequences, besides its loss. NaN: not known. */
struct report_speed {
    double lr, grad_norm, tokens_per_s;
    double mfu; /* of the peak, 0..1 */
};
void report_speed(struct report *r, int64_t step, const struct report_speed *v);

/* Write a line of the preset's own, on any rank: r may be NULL, `out` is the stream. In JSON rank 0 writes `event`
 * instead, with the epoch, and with the loss unless that is NaN. */
void report_line(struct report *r, FILE *out, enum log_format format, const char *event, const char *text,
                 const struct lines_values *v);

/* After every step: redraws the bar, writes the progress file and events, when each is due. */
void report_progress(struct report *r, int64_t epoch, int64_t step, double loss);

/* The bar goes, until the next step: something else is to be written to the terminal. */
void report_hide(struct report *r);

/* Report a validation or test after a step; accuracy NaN: there is none. */
void report_val(struct report *r, int64_t epoch, int64_t step, double loss, double accuracy);
void report_test(struct report *r, int64_t global_step, double loss, double accuracy);

/* Write the weights as histograms, where there are events. */
void report_histograms(struct report *r, const struct model *m, int64_t global_step);

void report_times(struct report *r, const struct report_times *t);

/* A checkpoint of step `step` of the run is on disk; text says so only when `last`, and with `hint` how to use it. */
void report_checkpoint(struct report *r, const char *dir, int64_t step, bool last, bool hint);

/* Write why the run ends early. during: "validation" or "test", NULL: a step of training. */
void report_stop(struct report *r, const char *signal_name, const char *during, int64_t epoch, int64_t step);

int report_close(struct report *r, struct err *err);

#endif
