/* event_kinds.c - encode histograms, images, text, graphs and hyperparameters as event.proto, summary.proto and
 * graph.proto define them. */
#include "trainer/events/event_kinds.h"
#include "common/endian.h"

#include "trainer/events/event_encode.h"
#include "trainer/events/proto.h"

#include <math.h>
#include <string.h>

enum { EVENT_WALL_TIME = 1, EVENT_STEP = 2, EVENT_GRAPH_DEF = 4, EVENT_SUMMARY = 5, EVENT_SESSION_LOG = 7 };
enum { SUMMARY_VALUE = 1, VALUE_TAG = 1, VALUE_TENSOR = 8, VALUE_METADATA = 9 };
enum { METADATA_PLUGIN_DATA = 1, METADATA_DATA_CLASS = 4, PLUGIN_NAME = 1, PLUGIN_CONTENT = 2 };
enum { TENSOR_DTYPE = 1, TENSOR_SHAPE = 2, TENSOR_CONTENT = 4, TENSOR_FLOAT_VAL = 5, TENSOR_STRING_VAL = 8 };
enum { SHAPE_DIM = 2, DIM_SIZE = 1 };
enum { DT_FLOAT = 1, DT_DOUBLE = 2, DT_STRING = 7 };
enum data_class { DATA_CLASS_NONE = 0, DATA_CLASS_TENSOR = 2, DATA_CLASS_BLOBS = 3 };
enum { SESSION_STATUS = 1, SESSION_START = 1 };
enum { HPARAMS_SESSION_START = 3, START_HPARAMS = 1, START_GROUP = 4, START_TIME = 5 };
enum { MAP_KEY = 1, MAP_VALUE = 2, ANY_NUMBER = 2, ANY_STRING = 3 };
enum {
    GRAPH_NODE = 1,
    GRAPH_VERSIONS = 4,
    VERSIONS_PRODUCER = 1,
    NODE_NAME = 1,
    NODE_OP = 2,
    NODE_INPUT = 3
};
enum { GRAPH_PRODUCER = 22 }; /* what TensorFlow 2 and PyTorch write */

#define MESSAGE BUF_INIT(EVENT_VALUE_BYTES)

static int put_metadata(struct buf *value, const char *plugin, const struct buf *content,
                        enum data_class class, struct err *err)
{
    cleanup_buf struct buf data = MESSAGE;
    cleanup_buf struct buf metadata = MESSAGE;

    if (proto_str(&data, PLUGIN_NAME, plugin, err) ||
        (content && proto_message(&data, PLUGIN_CONTENT, content, err)) ||
        proto_message(&metadata, METADATA_PLUGIN_DATA, &data, err) ||
        (class && proto_int(&metadata, METADATA_DATA_CLASS, class, err)))
        return -1;
    return proto_message(value, VALUE_METADATA, &metadata, err);
}

/* A shape of the dimensions that are not 0, two at most. */
static int put_shape(struct buf *tensor, int64_t rows, int64_t cols, struct err *err)
{
    cleanup_buf struct buf shape = MESSAGE;
    const int64_t dims[] = {rows, cols};

    for (size_t i = 0; i < 2 && dims[i]; i++) {
        cleanup_buf struct buf dim = MESSAGE;
        if (proto_int(&dim, DIM_SIZE, dims[i], err) || proto_message(&shape, SHAPE_DIM, &dim, err))
            return -1;
    }
    return proto_bytes(tensor, TENSOR_SHAPE, buf_str(&shape), shape.len, err);
}

/* The frame around one value: tag, tensor, metadata. */
static int put_event(const struct event_place *at, const struct buf *tensor, const char *plugin,
                     const struct buf *content, enum data_class class, struct buf *out, struct err *err)
{
    cleanup_buf struct buf value = MESSAGE;
    cleanup_buf struct buf summary = MESSAGE;
    cleanup_buf struct buf event = MESSAGE;

    if (proto_str(&value, VALUE_TAG, at->tag, err) || proto_message(&value, VALUE_TENSOR, tensor, err) ||
        (at->first && put_metadata(&value, plugin, content, class, err)) ||
        proto_message(&summary, SUMMARY_VALUE, &value, err) ||
        proto_double(&event, EVENT_WALL_TIME, at->wall_time_s, err) ||
        (at->step && proto_int(&event, EVENT_STEP, at->step, err)) ||
        proto_message(&event, EVENT_SUMMARY, &summary, err))
        return -1;
    return event_encode_record(event.data, event.len, out, err);
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

int event_encode_histogram(const struct event_place *at, const float *values, size_t n, struct buf *out,
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
    return put_event(at, &tensor, "histograms", NULL, DATA_CLASS_TENSOR, out, err);
}

int event_encode_image(const struct event_place *at, const struct buf *png, int width, int height,
                       struct buf *out, struct err *err)
{
    cleanup_buf struct buf tensor = MESSAGE;
    char w[16];
    char h[16];

    snprintf(w, sizeof(w), "%d", width);
    snprintf(h, sizeof(h), "%d", height);
    if (proto_int(&tensor, TENSOR_DTYPE, DT_STRING, err) || put_shape(&tensor, 3, 0, err) ||
        proto_str(&tensor, TENSOR_STRING_VAL, w, err) || proto_str(&tensor, TENSOR_STRING_VAL, h, err) ||
        proto_message(&tensor, TENSOR_STRING_VAL, png, err))
        return -1;
    return put_event(at, &tensor, "images", NULL, DATA_CLASS_BLOBS, out, err);
}

int event_encode_text(const struct event_place *at, const char *text, struct buf *out, struct err *err)
{
    cleanup_buf struct buf tensor = MESSAGE;

    if (proto_int(&tensor, TENSOR_DTYPE, DT_STRING, err) || put_shape(&tensor, 1, 0, err) ||
        proto_str(&tensor, TENSOR_STRING_VAL, text, err))
        return -1;
    return put_event(at, &tensor, "text", NULL, DATA_CLASS_TENSOR, out, err);
}

static int put_hparam(struct buf *start, const struct event_hparam *h, struct err *err)
{
    cleanup_buf struct buf any = MESSAGE;
    cleanup_buf struct buf entry = MESSAGE;

    if (h->text ? proto_str(&any, ANY_STRING, h->text, err) : proto_double(&any, ANY_NUMBER, h->number, err))
        return -1;
    if (proto_str(&entry, MAP_KEY, h->name, err) || proto_message(&entry, MAP_VALUE, &any, err))
        return -1;
    return proto_message(start, START_HPARAMS, &entry, err);
}

int event_encode_hparams(double wall_time_s, const char *group, const struct event_hparam *h, size_t n,
                         struct buf *out, struct err *err)
{
    const struct event_place at = {
        .wall_time_s = wall_time_s, .tag = "_hparams_/session_start_info", .first = true};
    static const uint8_t zero[4];
    cleanup_buf struct buf start = MESSAGE;
    cleanup_buf struct buf content = MESSAGE;
    cleanup_buf struct buf tensor = MESSAGE;

    for (size_t i = 0; i < n; i++)
        if (put_hparam(&start, &h[i], err))
            return -1;
    /* The tensor is a placeholder: the plugin reads its metadata alone. */
    if (proto_str(&start, START_GROUP, group, err) || proto_double(&start, START_TIME, wall_time_s, err) ||
        proto_message(&content, HPARAMS_SESSION_START, &start, err) ||
        proto_int(&tensor, TENSOR_DTYPE, DT_FLOAT, err) || put_shape(&tensor, 0, 0, err) ||
        proto_bytes(&tensor, TENSOR_FLOAT_VAL, zero, sizeof(zero), err))
        return -1;
    return put_event(&at, &tensor, "hparams", &content, DATA_CLASS_NONE, out, err);
}

int event_encode_graph(double wall_time_s, const struct event_node *node, size_t n, struct buf *out,
                       struct err *err)
{
    cleanup_buf struct buf graph = MESSAGE;
    cleanup_buf struct buf versions = MESSAGE;
    cleanup_buf struct buf event = MESSAGE;

    for (size_t i = 0; i < n; i++) {
        cleanup_buf struct buf one = MESSAGE;
        if (proto_str(&one, NODE_NAME, node[i].name, err) || proto_str(&one, NODE_OP, node[i].op, err) ||
            (node[i].input && proto_str(&one, NODE_INPUT, node[i].input, err)) ||
            proto_message(&graph, GRAPH_NODE, &one, err))
            return -1;
    }
    if (proto_int(&versions, VERSIONS_PRODUCER, GRAPH_PRODUCER, err) ||
        proto_message(&graph, GRAPH_VERSIONS, &versions, err) ||
        proto_double(&event, EVENT_WALL_TIME, wall_time_s, err) ||
        proto_message(&event, EVENT_GRAPH_DEF, &graph, err))
        return -1;
    return event_encode_record(event.data, event.len, out, err);
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
    return event_encode_record(event.data, event.len, out, err);
}
