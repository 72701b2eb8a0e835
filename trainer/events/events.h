/* events.h - append scalars and histograms to a TensorBoard event file. run/report.c calls it.
 *
 * Ownership: events_open to events_close, which flushes. One thread at a time.
 * Units:     steps are the trainer's global steps; times come from the given clock.
 * Errors:    ERR_FATAL (cannot write; code = errno), ERR_INVALID (a record that is too long). After a failed
 *            write the file ends with its last complete record, and pending records stay for the next flush,
 *            up to EVENTS_PENDING_BYTES.
 */
#ifndef TK_TRAINER_EVENTS_EVENTS_H
#define TK_TRAINER_EVENTS_EVENTS_H

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    EVENTS_FLUSH_MS = 2000, /* the usual flush_ms */
    EVENTS_PENDING_BYTES = 1 << 20,
};

struct events;

struct events_options {
    const char *log_dir; /* created if absent */
    const char *host;    /* part of the file's name; '/' becomes '_' */
    int64_t pid;
    bool fresh; /* remove files that events_open created in log_dir itself and no process writes any more */
    int64_t purge_step; /* readers drop events of earlier files from this step on; 0: none */
    int64_t
        flush_ms; /* the longest time that a record stays in memory, if the functions below are called; 0: none */
    struct clock clock;
};

/* Create events.out.tfevents.<10-digit seconds>.<host>.<pid>.<n>.trainer with the first free n, write its
 * header, and lock it (flock) until events_close. */
struct events *events_open(const struct events_options *o, struct err *err) MUST_CHECK;

/* Append one scalar. Flushes if a record is older than flush_ms. */
int events_scalar(struct events *e, const char *tag, int64_t step, float value, struct err *err) MUST_CHECK;

int events_histogram(struct events *e, const char *tag, int64_t step, const float *values, size_t n,
                     struct err *err) MUST_CHECK;

/* Flush if due: for loops that add nothing for a while. */
int events_tick(struct events *e, struct err *err) MUST_CHECK;
int events_flush(struct events *e, struct err *err) MUST_CHECK;

/* Flush and free, also after a failure. Accepts NULL. */
int events_close(struct events *e, struct err *err);

/* Whether `fresh` removed a file. */
bool events_removed(const struct events *e);

#endif
