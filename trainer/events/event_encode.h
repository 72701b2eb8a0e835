/* event_encode.h - encode TensorBoard events as protobuf messages in TFRecord framing. Pure.
 *
 * Errors: ERR_INVALID when *out reaches its limit; *out is then as it was.
 * Numerics: wall times are seconds since the Unix epoch as a double, as TensorBoard stores them.
 */
#ifndef TK_TRAINER_EVENTS_EVENT_ENCODE_H
#define TK_TRAINER_EVENTS_EVENT_ENCODE_H

#include "common/buf.h"

#include <stdbool.h>
#include <stdint.h>

/* The first record of every file: file_version "brain.Event:2". */
int event_encode_header(double wall_time_s, struct buf *out, struct err *err);

/* One scalar in the plugin form: a rank-0 float tensor; `first` adds the tag's metadata (plugin "scalars",
 * data class scalar), which readers expect on a tag's first event. */
int event_encode_scalar(double wall_time_s, int64_t step, const char *tag, float value, bool first,
                        struct buf *out, struct err *err);

/* The frame around `len` bytes: length, masked CRC, bytes, masked CRC. */
int event_encode_record(const void *bytes, size_t len, struct buf *out, struct err *err);

#endif
