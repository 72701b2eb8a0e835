/* event_encode.c - encode TensorBoard records as event.proto, summary.proto and tensor.proto define them. */
#include "trainer/events/event_encode.h"
#include "common/endian.h"

#include <math.h>
#include <string.h>

/* Wire types, field numbers, and values of enumerations. */
enum { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_BYTES = 2 };
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

static void le_put_f64(uint8_t out[static 8], double v)
{
    uint64_t bits;

    memcpy(&bits, &v, sizeof(bits));
    le_put(out, bits, sizeof(bits));
}

static void put_varint(struct buf *b, uint64_t v)
{
    for (; v >= 0x80; v >>= 7)
        buf_append(b, &(uint8_t){(uint8_t)(v | 0x80)}, 1, NULL);
    buf_append(b, &(uint8_t){(uint8_t)v}, 1, NULL);
}

static void put_int(struct buf *b, uint32_t field, int64_t v)
{
    put_varint(b, field << 3 | WIRE_VARINT);
    put_varint(b, (uint64_t)v);
}

static void put_double(struct buf *b, uint32_t field, double v)
{
    uint8_t bytes[8];

    le_put_f64(bytes, v);
    put_varint(b, field << 3 | WIRE_FIXED64);
    buf_append(b, bytes, sizeof(bytes), NULL);
}

static void put_bytes(struct buf *b, uint32_t field, const void *bytes, size_t len)
{
    put_varint(b, field << 3 | WIRE_BYTES);
    put_varint(b, len);
    buf_append(b, bytes, len, NULL);
}

/* A nested message is preceded by its length, so each is built in its own buffer, from the inside out. */
static void put_message(struct buf *b, uint32_t field, const struct buf *message)
{
    b->full |= message->full;
    put_bytes(b, field, buf_str(message), message->len);
}

/* CRC-32C (Castagnoli), four bits at a time, since records are short; stored masked, as TFRecord requires. */
static void put_crc(uint8_t out[static 4], const void *bytes, size_t len)
{
    static const uint32_t nibbles[16] = {
        0x00000000U, 0x105ec76fU, 0x20bd8edeU, 0x30e349b1U, 0x417b1dbcU, 0x5125dad3U,
        0x61c69362U, 0x7198540dU, 0x82f63b78U, 0x92a8fc17U, 0xa24bb5a6U, 0xb21572c9U,
        0xc38d26c4U, 0xd3d3e1abU, 0xe330a81aU, 0xf36e6f75U,
    };
    const uint8_t *p = bytes;
    uint32_t crc = UINT32_MAX;

    for (size_t i = 0; i < len; i++) {
        crc ^= p[i];
        crc = (crc >> 4) ^ nibbles[crc & 15U];
        crc = (crc >> 4) ^ nibbles[crc & 15U];
    }
    crc = ~crc;
    le_put(out, ((crc >> 15) | (crc << 17)) + 0xa282ead8U, 4);
}

/* The frame around the event: length, CRC, bytes, CRC. */
static int put_record(const struct buf *event, struct buf *out, struct err *err)
{
    uint8_t head[12];
    uint8_t tail[4];

    if (event->full || event->len + sizeof(head) + sizeof(tail) > out->max - out->len)
        return err_set(err, ERR_INVALID, "event record: more than %zu bytes",
                       event->full ? event->max : out->max);
    le_put(head, event->len, 8);
    put_crc(head + 8, head, 8);
    put_crc(tail, event->data, event->len);
    return buf_append(out, head, sizeof(head), err) || buf_append(out, event->data, event->len, err) ||
                   buf_append(out, tail, sizeof(tail), err)
               ? -1
               : 0;
}

static void put_begin(struct buf *event, double wall_time_s, int64_t step)
{
    put_double(event, EVENT_WALL_TIME, wall_time_s);
    if (step)
        put_int(event, EVENT_STEP, step);
}

int event_encode_header(double wall_time_s, struct buf *out, struct err *err)
{
    static const char version[] = "brain.Event:2";
    cleanup_buf struct buf event = MESSAGE;

    put_begin(&event, wall_time_s, 0);
    put_bytes(&event, EVENT_FILE_VERSION, version, sizeof(version) - 1);
    return put_record(&event, out, err);
}

int event_encode_restart(double wall_time_s, int64_t step, struct buf *out, struct err *err)
{
    cleanup_buf struct buf session = MESSAGE;
    cleanup_buf struct buf event = MESSAGE;

    put_int(&session, SESSION_STATUS, SESSION_START);
    put_begin(&event, wall_time_s, step);
    put_message(&event, EVENT_SESSION_LOG, &session);
    return put_record(&event, out, err);
}

static void put_metadata(struct buf *value, const char *plugin, enum data_class class)
{
    cleanup_buf struct buf data = MESSAGE;
    cleanup_buf struct buf metadata = MESSAGE;

    put_bytes(&data, PLUGIN_NAME, plugin, strlen(plugin));
    put_message(&metadata, METADATA_PLUGIN_DATA, &data);
    put_int(&metadata, METADATA_DATA_CLASS, class);
    put_message(value, VALUE_METADATA, &metadata);
}

/* The event around one value: tag, tensor, metadata. */
static int put_value(const struct event_value *at, const struct buf *tensor, const char *plugin,
                     enum data_class class, struct buf *out, struct err *err)
{
    cleanup_buf struct buf value = MESSAGE;
    cleanup_buf struct buf summary = MESSAGE;
    cleanup_buf struct buf event = MESSAGE;

    put_bytes(&value, VALUE_TAG, at->tag, strlen(at->tag));
    put_message(&value, VALUE_TENSOR, tensor);
    if (at->first)
        put_metadata(&value, plugin, class);
    put_message(&summary, SUMMARY_VALUE, &value);
    put_begin(&event, at->wall_time_s, at->step);
    put_message(&event, EVENT_SUMMARY, &summary);
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
    put_int(&tensor, TENSOR_DTYPE, DT_FLOAT);
    put_bytes(&tensor, TENSOR_SHAPE, "", 0);
    put_bytes(&tensor, TENSOR_FLOAT_VAL, packed, sizeof(packed));
    return put_value(at, &tensor, "scalars", DATA_CLASS_SCALAR, out, err);
}

static void put_shape(struct buf *tensor, int64_t rows, int64_t cols)
{
    cleanup_buf struct buf shape = MESSAGE;
    const int64_t dims[] = {rows, cols};

    for (size_t i = 0; i < ARRAY_LEN(dims); i++) {
        cleanup_buf struct buf dim = MESSAGE;
        put_int(&dim, DIM_SIZE, dims[i]);
        put_message(&shape, SHAPE_DIM, &dim);
    }
    put_message(tensor, TENSOR_SHAPE, &shape);
}

struct bucket {
    double from, to, count;
};

/* As TensorBoard does: buckets of equal width; if all values are equal, they are in the last bucket. */
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
        for (int i = 0; i < 3; i++, p += 8)
            le_put_f64(p, triple[i]);
    }
    put_int(&tensor, TENSOR_DTYPE, DT_DOUBLE);
    put_shape(&tensor, EVENT_BUCKETS, 3);
    put_bytes(&tensor, TENSOR_CONTENT, content, sizeof(content));
    return put_value(at, &tensor, "histograms", DATA_CLASS_TENSOR, out, err);
}
