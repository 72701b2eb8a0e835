/* event_encode.c - encode TensorBoard records: the file header, scalars and other summaries. */
#include "trainer/events/event_encode.h"
#include "common/endian.h"

#include "trainer/events/crc32c.h"
#include "trainer/events/proto.h"

#include <string.h>

/* Field numbers of event.proto, summary.proto and tensor.proto. */
enum {
    EVENT_WALL_TIME = 1,
    EVENT_STEP = 2,
    EVENT_FILE_VERSION = 3,
    EVENT_SUMMARY = 5,
    SUMMARY_VALUE = 1,
    VALUE_TAG = 1,
    VALUE_TENSOR = 8,
    VALUE_METADATA = 9,
    METADATA_PLUGIN_DATA = 1,
    METADATA_DATA_CLASS = 4,
    PLUGIN_NAME = 1,
    TENSOR_DTYPE = 1,
    TENSOR_SHAPE = 2,
    TENSOR_FLOAT_VAL = 5,
};
enum { DT_FLOAT = 1, DATA_CLASS_SCALAR = 1 };

enum { MESSAGE_BYTES = 4096 };

static int encode_metadata(struct buf *value, struct err *err)
{
    cleanup_buf struct buf plugin = BUF_INIT(MESSAGE_BYTES);
    cleanup_buf struct buf metadata = BUF_INIT(MESSAGE_BYTES);

    if (proto_str(&plugin, PLUGIN_NAME, "scalars", err) < 0 ||
        proto_message(&metadata, METADATA_PLUGIN_DATA, &plugin, err) < 0 ||
        proto_int(&metadata, METADATA_DATA_CLASS, DATA_CLASS_SCALAR, err) < 0)
        return -1;
    return proto_message(value, VALUE_METADATA, &metadata, err);
}

/* A tensor of no dimensions: an empty shape and one value, which is packed as protobuf 3 packs repeated floats. */
static int encode_tensor(struct buf *value, float v, struct err *err)
{
    cleanup_buf struct buf tensor = BUF_INIT(MESSAGE_BYTES);
    uint32_t bits;
    uint8_t packed[4];

    memcpy(&bits, &v, sizeof(bits));
    le_put(packed, bits, sizeof(packed));
    if (proto_int(&tensor, TENSOR_DTYPE, DT_FLOAT, err) < 0 ||
        proto_bytes(&tensor, TENSOR_SHAPE, "", 0, err) < 0 ||
        proto_bytes(&tensor, TENSOR_FLOAT_VAL, packed, sizeof(packed), err) < 0)
        return -1;
    return proto_message(value, VALUE_TENSOR, &tensor, err);
}

int event_encode_record(const void *bytes, size_t len, struct buf *out, struct err *err)
{
    uint8_t head[12];
    uint8_t tail[4];

    if (len + sizeof(head) + sizeof(tail) > out->max - out->len)
        return err_set(err, ERR_INVALID, "event record: more than %zu bytes", out->max);
    le_put(head, len, 8);
    le_put(head + 8, crc32c_mask(crc32c(head, 8)), 4);
    le_put(tail, crc32c_mask(crc32c(bytes, len)), 4);
    if (buf_append(out, head, sizeof(head), err) < 0 || buf_append(out, bytes, len, err) < 0)
        return -1;
    return buf_append(out, tail, sizeof(tail), err);
}

int event_encode_header(double wall_time_s, struct buf *out, struct err *err)
{
    cleanup_buf struct buf event = BUF_INIT(MESSAGE_BYTES);

    if (proto_double(&event, EVENT_WALL_TIME, wall_time_s, err) < 0 ||
        proto_str(&event, EVENT_FILE_VERSION, "brain.Event:2", err) < 0)
        return -1;
    return event_encode_record(event.data, event.len, out, err);
}

int event_encode_scalar(double wall_time_s, int64_t step, const char *tag, float value, bool first,
                        struct buf *out, struct err *err)
{
    cleanup_buf struct buf v = BUF_INIT(MESSAGE_BYTES);
    cleanup_buf struct buf summary = BUF_INIT(MESSAGE_BYTES);
    cleanup_buf struct buf event = BUF_INIT(MESSAGE_BYTES);

    if (proto_str(&v, VALUE_TAG, tag, err) < 0 || encode_tensor(&v, value, err) < 0 ||
        (first && encode_metadata(&v, err) < 0) || proto_message(&summary, SUMMARY_VALUE, &v, err) < 0)
        return -1;
    if (proto_double(&event, EVENT_WALL_TIME, wall_time_s, err) < 0 ||
        (step && proto_int(&event, EVENT_STEP, step, err) < 0) ||
        proto_message(&event, EVENT_SUMMARY, &summary, err) < 0)
        return -1;
    return event_encode_record(event.data, event.len, out, err);
}
