/* proto.h - append protobuf fields to a buffer. Pure.
 *
 * A message within a message carries its length first, so each is built in a small buffer of its own, inside out.
 *
 * Errors: ERR_INVALID when *b reaches its limit.
 */
#ifndef TK_TRAINER_EVENTS_PROTO_H
#define TK_TRAINER_EVENTS_PROTO_H

#include "common/buf.h"

#include <stddef.h>
#include <stdint.h>

int proto_int(struct buf *b, uint32_t field, int64_t v, struct err *err);
int proto_double(struct buf *b, uint32_t field, double v, struct err *err);
int proto_bytes(struct buf *b, uint32_t field, const void *bytes, size_t len, struct err *err);
int proto_str(struct buf *b, uint32_t field, const char *s, struct err *err);
int proto_message(struct buf *b, uint32_t field, const struct buf *message, struct err *err);

#endif
