/* proto.c - append protobuf fields of the three wire types that events need: varint, 64-bit, length-delimited. */
#include "trainer/events/proto.h"
#include "common/endian.h"

#include <string.h>

enum wire { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_BYTES = 2 };
enum { VARINT_BYTES = 10 };

static int proto_varint(struct buf *b, uint64_t v, struct err *err)
{
    uint8_t bytes[VARINT_BYTES];
    size_t n = 0;

    for (; v >= 0x80; v >>= 7)
        bytes[n++] = (uint8_t)(v | 0x80);
    bytes[n++] = (uint8_t)v;
    return buf_append(b, bytes, n, err);
}

static int proto_key(struct buf *b, uint32_t field, enum wire wire, struct err *err)
{
    return proto_varint(b, field << 3 | (uint32_t)wire, err);
}

int proto_int(struct buf *b, uint32_t field, int64_t v, struct err *err)
{
    if (proto_key(b, field, WIRE_VARINT, err) < 0)
        return -1;
    return proto_varint(b, (uint64_t)v, err);
}

int proto_double(struct buf *b, uint32_t field, double v, struct err *err)
{
    uint64_t bits;
    uint8_t bytes[8];

    memcpy(&bits, &v, sizeof(bits));
    le_put(bytes, bits, sizeof(bytes));
    if (proto_key(b, field, WIRE_FIXED64, err) < 0)
        return -1;
    return buf_append(b, bytes, sizeof(bytes), err);
}

int proto_bytes(struct buf *b, uint32_t field, const void *bytes, size_t len, struct err *err)
{
    if (proto_key(b, field, WIRE_BYTES, err) < 0 || proto_varint(b, len, err) < 0)
        return -1;
    return buf_append(b, bytes, len, err);
}

int proto_str(struct buf *b, uint32_t field, const char *s, struct err *err)
{
    return proto_bytes(b, field, s, strlen(s), err);
}

int proto_message(struct buf *b, uint32_t field, const struct buf *message, struct err *err)
{
    return proto_bytes(b, field, buf_str(message), message->len, err);
}
