/* event_encode.h - encode TensorBoard events as protobuf messages in TFRecord framing. events.c calls it.
 * Pure.
 *
 * Errors: ERR_INVALID if *out reaches its limit; *out is then unchanged.
 * Numerics: wall times are seconds since the Unix epoch as a double, as TensorBoard stores them.
 */
#ifndef TK_TRAINER_EVENTS_EVENT_ENCODE_H
#define TK_TRAINER_EVENTS_EVENT_ENCODE_H

#include "common/buf.h"
#include "common/cleanup.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The first record of every file: file_version "brain.Event:2". */
int event_encode_header(double wall_time_s, struct buf *out, struct err *err) MUST_CHECK;

/* A session start: readers drop earlier events of this folder from `step` on. */
int event_encode_restart(double wall_time_s, int64_t step, struct buf *out, struct err *err) MUST_CHECK;

struct event_value {
    double wall_time_s;
    int64_t step;
    const char *tag;
    bool first; /* add the tag's metadata, which readers expect on a tag's first event */
};

/* In the plugin form: a rank-0 float tensor, data class scalar. */
int event_encode_scalar(const struct event_value *at, float value, struct buf *out,
                        struct err *err) MUST_CHECK;

enum { EVENT_BUCKETS = 30 };

/* EVENT_BUCKETS of equal width from the least to the greatest of n values, without those that are not
 * finite. */
int event_encode_histogram(const struct event_value *at, const float *values, size_t n, struct buf *out,
                           struct err *err) MUST_CHECK;

#endif
