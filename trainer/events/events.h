/* events.h - append scalars and histograms to a TensorBoard event file, record by record.
 *
 * Ownership: events_open makes, events_close flushes and frees. One thread at a time.
 * Units:     steps are the trainer's global steps; times come from the given clock.
 * Errors:    ERR_FATAL (cannot write; code = errno), ERR_INVALID (a record that is too long). After a failed write the
 *            file ends with its last whole record and what is pending stays for the next flush, within
 *            EVENTS_PENDING_BYTES.
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
    EVENTS_FLUSH_MS = 2000, /* a sensible flush_ms */
    EVENTS_PENDING_BYTES = 1 << 20,
};

struct events;

struct events_options {
    const char *log_dir; /* made when absent */
    const char *host;    /* part of the file's name; '/' becomes '_' */
    int64_t pid;
    bool fresh; /* remove the files that events_open made in log_dir itself and nobody writes any more */
    int64_t
        purge_step; /* when not fresh: what earlier files say of this step and later ones is void; 0: nothing */
    int64_t flush_ms; /* the longest a record waits when events are added or ticked; 0: none waits */
    struct clock clock;
};

/* Makes events.out.tfevents.<10-digit seconds>.<host>.<pid>.<n>.trainer with the first free n, its header on disk. It is
 * locked (flock) until events_close. */
struct events *events_open(const struct events_options *o, struct err *err) MUST_CHECK;

/* Append one scalar; writes out what has waited for flush_ms. */
int events_scalar(struct events *e, const char *tag, int64_t step, float value, struct err *err) MUST_CHECK;

int events_histogram(struct events *e, const char *tag, int64_t step, const float *values, size_t n,
                     struct err *err) MUST_CHECK;

/* Write out when due: for loops that add nothing for a while. */
int events_tick(struct events *e, struct err *err) MUST_CHECK;
int events_flush(struct events *e, struct err *err) MUST_CHECK;

/* Flush and free, also after a failure; NULL does nothing. */
int events_close(struct events *e, struct err *err);

/* Whether `fresh` removed any. */
bool events_removed(const struct events *e);

#endif
