/* event_encode.c - encode TensorBoard records as event.proto, summary.proto and tensor.proto define them. */
#include "trainer/events/event_encode.h"
#include "common/endian.h"

#include "trainer/events/crc32c.h"
#include "trainer/events/proto.h"

#include <math.h>
#include <string.h>

/* Field numbers, and values of enumerations. */
enum {
    EVENT_WALL_TIME = 1,
    EVENT_STEP = 2,
    EVENT_FILE_VERSION = 3,
    EVENT_SUMMARY = 5,
    EVENT_SESSION_LOG = 7,
    SUMMARY_VALUE = 1,
    VALUE_TAG = 1,
    VALUE_TENSOR = 8,
    VALUE_METADATA = 9,
    METADATA_PLUGIN_DATA = 1,
    METADATA_DATA_CLASS = 4,
    PLUGIN_NAME = 1,
    TENSOR_DTYPE = 1,
    TENSOR_SHAPE = 2,
    TENSOR_CONTENT = 4,
    TENSOR_FLOAT_VAL = 5,
    SHAPE_DIM = 2,
    DIM_SIZE = 1,
    SESSION_STATUS = 1,
};
enum { DT_FLOAT = 1, DT_DOUBLE = 2 };
enum data_class { DATA_CLASS_SCALAR = 1, DATA_CLASS_TENSOR = 2 };
enum { SESSION_START = 1 };

#define MESSAGE BUF_INIT(4096)

/* The frame around `len` bytes: length, masked CRC, bytes, masked CRC. */
static int put_record(const struct buf *event, struct buf *out, struct err *err)
{
    uint8_t head[12];
    uint8_t tail[4];

    if (event->len + sizeof(head) + sizeof(tail) > out->max - out->len)
        return err_set(err, ERR_INVALID, "event record: more than %zu bytes", out->max);
    le_put(head, event->len, 8);
    le_put(head + 8, crc32c_mask(crc32c(head, 8)), 4);
    le_put(tail, crc32c_mask(crc32c(event->data, event->len)), 4);
    return buf_append(out, head, sizeof(head), err) || buf_append(out, event->data, event->len, err) ||
                   buf_append(out, tail, sizeof(tail), err)
               ? -1
               : 0;
}

int event_encode_header(double wall_time_s, struct buf *out, struct err *err)
{
    cleanup_buf struct buf event = MESSAGE;

    if (proto_double(&event, EVENT_WALL_TIME, wall_time_s, err) ||
        proto_str(&event, EVENT_FILE_VERSION, "brain.Event:2", err))
        return -1;
    return put_record(&event, out, err);
}

int event_encode_restart(double wall_time_s, int64_t step, struct buf *out, struct err *err)
{
    cleanup_buf struct buf session = MESSAGE;
    cleanup_buf struct buf event = MESSAGE;

    if (proto_int(&session, SESSION_STATUS, SESSION_START, err) ||
        proto_double(&event, EVENT_WALL_TIME, wall_time_s, err) ||
        (step && proto_int(&event, EVENT_STEP, step, err)) ||
        proto_message(&event, EVENT_SESSION_LOG, &session, err))
        return -1;
    return put_record(&event, out, err);
}

static int put_metadata(struct buf *value, const char *plugin, enum data_class class, struct err *err)
{
    cleanup_buf struct buf data = MESSAGE;
    cleanup_buf struct buf metadata = MESSAGE;

    if (proto_str(&data, PLUGIN_NAME, plugin, err) ||
        proto_message(&metadata, METADATA_PLUGIN_DATA, &data, err) ||
        proto_int(&metadata, METADATA_DATA_CLASS, class, err))
        return -1;
    return proto_message(value, VALUE_METADATA, &metadata, err);
}

/* The event around one value: tag, tensor, metadata. */
static int put_value(const struct event_value *at, const struct buf *tensor, const char *plugin,
                     enum data_class class, struct buf *out, struct err *err)
{
    cleanup_buf struct buf value = MESSAGE;
    cleanup_buf struct buf summary = MESSAGE;
    cleanup_buf struct buf event = MESSAGE;

    if (proto_str(&value, VALUE_TAG, at->tag, err) || proto_message(&value, VALUE_TENSOR, tensor, err) ||
        (at->first && put_metadata(&value, plugin, class, err)) ||
        proto_message(&summary, SUMMARY_VALUE, &value, err) ||
        proto_double(&event, EVENT_WALL_TIME, at->wall_time_s, err) ||
        (at->step && proto_int(&event, EVENT_STEP, at->step, err)) ||
        proto_message(&event, EVENT_SUMMARY, &summary, err))
        return -1;
    return put_record(&event, out, err);
}

/* A tensor of no dimensions: an empty shape and one value, which is packed as protobuf 3 packs repeated floats. */
int event_encode_scalar(const struct event_value *at, float value, struct buf *out, struct err *err)
{
    cleanup_buf struct buf tensor = MESSAGE;
    uint32_t bits;
    uint8_t packed[4];

    memcpy(&bits, &value, sizeof(bits));
    le_put(packed, bits, sizeof(packed));
    if (proto_int(&tensor, TENSOR_DTYPE, DT_FLOAT, err) || proto_bytes(&tensor, TENSOR_SHAPE, "", 0, err) ||
        proto_bytes(&tensor, TENSOR_FLOAT_VAL, packed, sizeof(packed), err))
        return -1;
    return put_value(at, &tensor, "scalars", DATA_CLASS_SCALAR, out, err);
}

static int put_shape(struct buf *tensor, int64_t rows, int64_t cols, struct err *err)
{
    cleanup_buf struct buf shape = MESSAGE;
    const int64_t dims[] = {rows, cols};

    for (size_t i = 0; i < ARRAY_LEN(dims); i++) {
        cleanup_buf struct buf dim = MESSAGE;
        if (proto_int(&dim, DIM_SIZE, dims[i], err) || proto_message(&shape, SHAPE_DIM, &dim, err))
            return -1;
    }
    return proto_message(tensor, TENSOR_SHAPE, &shape, err);
}

struct bucket {
    double from, to, count;
};

/* As TensorBoard's own: equal widths; values that are all the same stand in the last bucket. */
static void count(const float *values, size_t n, struct bucket b[static EVENT_BUCKETS])
{
    double low = INFINITY;
    double high = -INFINITY;

    for (size_t i = 0; i < n; i++) {
        if (!isfinite(values[i]))
            continue;
        low = fmin(low, (double)values[i]);
        high = fmax(high, (double)values[i]);
    }
    for (int k = 0; k < EVENT_BUCKETS; k++)
        b[k] = (struct bucket){0};
    if (low > high)
        return;
    double width = (high - low) / EVENT_BUCKETS;
    for (int k = 0; k < EVENT_BUCKETS; k++)
        b[k] = (struct bucket){.from = low + k * width,
                               .to = k == EVENT_BUCKETS - 1 ? high : low + (k + 1) * width};
    for (size_t i = 0; i < n; i++) {
        if (!isfinite(values[i]))
            continue;
        int k = width > 0 ? (int)(((double)values[i] - low) / width) : EVENT_BUCKETS - 1;
        b[k < EVENT_BUCKETS ? k : EVENT_BUCKETS - 1].count++;
    }
}

int event_encode_histogram(const struct event_value *at, const float *values, size_t n, struct buf *out,
                           struct err *err)
{
    cleanup_buf struct buf tensor = MESSAGE;
    struct bucket b[EVENT_BUCKETS];
    uint8_t content[EVENT_BUCKETS * 3 * 8];
    uint8_t *p = content;

    count(values, n, b);
    for (int k = 0; k < EVENT_BUCKETS; k++) {
        const double triple[] = {b[k].from, b[k].to, b[k].count};
        for (int i = 0; i < 3; i++, p += 8) {
            uint64_t bits;
            memcpy(&bits, &triple[i], sizeof(bits));
            le_put(p, bits, 8);
        }
    }
    if (proto_int(&tensor, TENSOR_DTYPE, DT_DOUBLE, err) || put_shape(&tensor, EVENT_BUCKETS, 3, err) ||
        proto_bytes(&tensor, TENSOR_CONTENT, content, sizeof(content), err))
        return -1;
    return put_value(at, &tensor, "histograms", DATA_CLASS_TENSOR, out, err);
}
