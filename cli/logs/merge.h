/* merge.h - merge the log lines of several containers in order of their timestamps. For `kubectl ptj logs`. Pure.
 *
 * A stream that is read from its beginning (not live) holds the others back until it has a line or ends, at most for
 * MERGE_PATIENCE_MS without a byte: so existing lines come out in order, however fast each server answers. A live stream may be silent
 * for hours, so a line waits for live streams for MERGE_WINDOW_MS only.
 *
 * Memory:    a queue of MERGE_QUEUE_BYTES and an unfinished line of MERGE_LINE_BYTES for each stream, beyond that one piece of what
 *            is fed; callers stop feeding streams that are full.
 * Ownership: merge_free frees all; a line that merge_next gave is valid until the next call of it.
 * Units:     mono_ms, monotonic milliseconds; ns, nanoseconds since the Unix epoch.
 */
#ifndef TK_CLI_LOGS_MERGE_H
#define TK_CLI_LOGS_MERGE_H

#include "common/cleanup.h"
#include "common/sv.h"

enum {
    MERGE_STREAMS = 128, /* twice as many as are read: those of an attempt that ended, and of the next */
    MERGE_LINE_BYTES = 64 << 10, /* of a longer line the beginning is kept */
    MERGE_QUEUE_BYTES = 64 << 10,
    MERGE_WINDOW_MS = 500,
    MERGE_PATIENCE_MS = 10000,
    MERGE_SINCE_BYTES = 32,
};

struct merge;

struct merge_line {
    int stream;
    int64_t ns;
    struct sv time; /* as the server wrote it; empty: the line had none */
    struct sv text;
};

struct merge *merge_new(void);
void merge_free(struct merge *m);

/* Begin the stream of this number, below MERGE_STREAMS. False: it is in use, or lines of it were not taken yet. */
bool merge_open(struct merge *m, int stream, int64_t mono_ms) MUST_CHECK;

/* An answer begins, the first one or one after a break: lines that came already are passed over. */
void merge_begin(struct merge *m, int stream, bool live, int64_t mono_ms);
void merge_feed(struct merge *m, int stream, struct sv bytes, int64_t mono_ms);
/* The answer is over; `whole`: nothing was lost, so an unfinished last line is a line. */
void merge_end(struct merge *m, int stream, bool whole, int64_t mono_ms);

/* No more answers; its number is free once its lines were taken. */
void merge_close(struct merge *m, int stream);

bool merge_is_full(const struct merge *m, int stream);

/* Take the next line if its turn has come. */
bool merge_next(struct merge *m, int64_t mono_ms, struct merge_line *ret);

/* When to call merge_next again though nothing was fed; INT64_MAX: not before something is. */
int64_t merge_due_ms(const struct merge *m, int64_t mono_ms);

/* Nothing is left to take. */
bool merge_is_empty(const struct merge *m);

/* The second of the stream's last line as RFC 3339, where the next request begins after a break. False: it had none. */
bool merge_since(const struct merge *m, int stream, char out[static MERGE_SINCE_BYTES]);

#endif
