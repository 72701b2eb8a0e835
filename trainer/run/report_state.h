/* report_state.h - the struct that report.c and report_scores.c share. No other file includes it. */
#ifndef TK_TRAINER_RUN_REPORT_STATE_H
#define TK_TRAINER_RUN_REPORT_STATE_H

#include "trainer/run/bar.h"
#include "trainer/run/progress_writer.h"
#include "trainer/run/report.h"

struct report {
    struct report_options o;
    struct events *events; /* NULL: none */
    struct err events_err; /* the first failure; kind ERR_NONE: none */
    struct pace pace;
    struct bar bar;
    struct progress_writer progress;
    int64_t epoch;      /* of report_epoch; 0: none */
    int64_t first_step; /* steps of the run before that epoch */
    int64_t steps;      /* of it */
};

/* As JSON: a line begins, and true. */
bool report_begin_json(struct report *r, const char *event);
void report_end(struct report *r);

void report_scalar(struct report *r, const char *tag, int64_t step, double value);

/* Steps of an epoch, and the run's step that one of its steps is. */
int64_t report_steps_of(const struct report *r, int64_t epoch);
int64_t report_global_step(const struct report *r, int64_t epoch, int64_t step);

/* Text that the preset's own lines stand for. */
bool report_silent(const struct report *r);

#endif
