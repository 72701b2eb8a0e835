/* safetensors.c - read and write .safetensors: a JSON header, then the tensors' bytes. */
#include "trainer/state/files/safetensors.h"
#include "common/endian.h"

#include "common/json.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { LENGTH_BYTES = 8, HEADER_ALIGN = 8 };

/* In the order of the file: the widest elements first. */
static const struct tensor_row **in_order(const struct tensor_list *list, struct arena *a)
{
    const struct tensor_row **row = arena_array(a, list->len + 1, const struct tensor_row *);
    size_t n = 0;

    for (size_t width = 8; width; width /= 2)
        for (size_t i = 0; i < list->len; i++)
            if (pt_dtype_bytes(list->row[i].tensor.dtype) == width)
                row[n++] = &list->row[i];
    return row;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static int check_names(const struct tensor_list *list, struct arena *a, struct err *err)
{
    const char **name = arena_array(a, list->len + 1, const char *);

    for (size_t i = 0; i < list->len; i++)
        name[i] = list->row[i].name;
    qsort(name, list->len, sizeof(*name), by_name);
    for (size_t i = 1; i < list->len; i++)
        if (strcmp(name[i - 1], name[i]) == 0)
            return err_set(err, ERR_INVALID, "%.80s: two tensors of one name", name[i]);
    return 0;
}

/* Write one tensor's header entry; its data begin at offset *at, which is then set to their end. */
static int describe(const struct tensor_row *row, int64_t *at, struct buf *out, struct err *err)
{
    const struct pt_tensor *t = &row->tensor;
    const int64_t bytes = pt_tensor_bytes(t), from = *at;

    if (t->transposed && (t->dims != 2 || t->dtype != PT_F32))
        return err_set(err, ERR_INVALID, "%.80s: only a matrix of f32 can be transposed", row->name);
    if (bytes < 0 || __builtin_add_overflow(from, bytes, at) || *at > INT64_C(1) << 53)
        return err_set(err, ERR_INVALID, "%.80s: its shape is impossible", row->name);
    if (buf_puts(out, ",", err) || json_write_string(row->name, out, err) ||
        buf_printf(out, err, ":{\"dtype\":\"%s\",\"shape\":[", pt_dtype_name(t->dtype)))
        return -1;
    for (int32_t i = 0; i < t->dims; i++)
        if (buf_printf(out, err, "%s%" PRId64, i ? "," : "", t->dim[i]))
            return -1;
    return buf_printf(out, err, "],\"data_offsets\":[%" PRId64 ",%" PRId64 "]}", from, *at);
}

static int make_header(struct buf *out, const struct tensor_row **row, size_t n, struct err *err)
{
    int64_t at = 0;

    if (buf_puts(out, "{\"__metadata__\":{\"format\":\"pt\"}", err))
        return -1;
    for (size_t i = 0; i < n; i++)
        if (describe(row[i], &at, out, err))
            return -1;
    if (buf_puts(out, "}", err))
        return -1;
    while (out->len % HEADER_ALIGN)
        if (buf_puts(out, " ", err))
            return -1;
    return 0;
}

/* Write the transpose, as many rows at a time as a cache line has numbers. */
static int write_transposed(const struct pt_tensor *t, const struct pt_sink *sink, struct arena *a,
                            struct err *err)
{
    enum { ROWS = 16 };
    const size_t rows = (size_t)t->dim[0], width = (size_t)t->dim[1];
    const float *data = t->data;
    float *block = arena_array(a, ROWS * width, float);

    for (size_t first = 0; first < rows; first += ROWS) {
        const size_t n = rows - first < ROWS ? rows - first : ROWS;
        for (size_t w = 0; w < width; w++)
            for (size_t k = 0; k < n; k++)
                block[k * width + w] = data[w * rows + first + k];
        if (sink->write(sink->ctx, block, n * width * sizeof(*block), err))
            return -1;
    }
    return 0;
}

int safetensors_write(const struct tensor_list *list, const struct pt_sink *sink, struct err *err)
{
    cleanup_arena struct arena a = {0};
    cleanup_buf struct buf header = BUF_INIT(SAFETENSORS_HEADER_BYTES);
    const struct tensor_row **row = in_order(list, &a);
    uint8_t length[LENGTH_BYTES];

    if (check_names(list, &a, err) || make_header(&header, row, list->len, err))
        return -1;
    le_put(length, header.len, LENGTH_BYTES);
    if (sink->write(sink->ctx, length, sizeof(length), err) ||
        sink->write(sink->ctx, header.data, header.len, err))
        return -1;
    for (size_t i = 0; i < list->len; i++) {
        const struct pt_tensor *t = &row[i]->tensor;
        const size_t bytes = (size_t)pt_tensor_bytes(t);
        if (t->transposed ? write_transposed(t, sink, &a, err)
                          : bytes && sink->write(sink->ctx, t->data, bytes, err))
            return -1;
    }
    return 0;
}

struct extent {
    int64_t from, to;
};

static int parse_dtype(const struct json_at *at, enum pt_dtype *ret, struct err *err)
{
    const char *name = "";

    if (json_get_str(at, "dtype", &name, err))
        return -1;
    for (int i = 0; i < PT_DTYPES; i++) {
        if (strcmp(pt_dtype_name((enum pt_dtype)i), name) == 0) {
            *ret = (enum pt_dtype)i;
            return 0;
        }
    }
    return json_err(at, err, "dtype: expected one of the format's (F32, BF16, I64, U8, ...), got \"%.40s\"",
                    name);
}

/* Parse an array of at most `max` integers from 0 to 2^53; returns their number, or -1. */
static int parse_array(const struct json_at *tensor, const char *key, int max, int64_t *v, struct err *err)
{
    struct json_at at = json_member(tensor, key);
    const cJSON *item;
    int n = 0;

    if (!at.node)
        return json_err(tensor, err, "expected dtype, shape and data_offsets");
    if (json_expect_array(&at, max, err))
        return -1;
    cJSON_ArrayForEach(item, at.node)
    {
        v[n] = cJSON_IsNumber(item) ? json_exact_i64(item, -1) : -1;
        if (v[n++] < 0)
            return json_err(&at, err, "expected integers from 0 to 2^53");
    }
    return n;
}

/* Parse {"dtype": ..., "shape": ..., "data_offsets": [begin, end]}; offsets are relative to `data`. */
static int parse_tensor(const struct json_at *at, const uint8_t *data, int64_t data_len, struct pt_tensor *t,
                        struct extent *extent, struct err *err)
{
    int64_t offsets[2] = {0};

    if (!cJSON_IsObject(at->node))
        return json_err(at, err, "expected an object");
    if (parse_dtype(at, &t->dtype, err))
        return -1;
    t->dims = parse_array(at, "shape", PT_DIMS_MAX, t->dim, err);
    int n = parse_array(at, "data_offsets", 2, offsets, err);
    if (t->dims < 0 || n < 0)
        return -1;
    if (n != 2 || offsets[0] > offsets[1] || offsets[1] > data_len)
        return json_err(at, err, "data_offsets: expected [begin, end] within %" PRId64 " bytes", data_len);
    int64_t bytes = pt_tensor_bytes(t);
    if (bytes != offsets[1] - offsets[0])
        return json_err(at, err, "data_offsets: %" PRId64 " bytes, but the shape says %" PRId64,
                        offsets[1] - offsets[0], bytes);
    t->data = data + offsets[0];
    *extent = (struct extent){offsets[0], offsets[1]};
    return 0;
}

static int by_offset(const void *a, const void *b)
{
    const struct extent *x = a;
    const struct extent *y = b;

    if (x->from != y->from)
        return x->from < y->from ? -1 : 1;
    return (x->to > y->to) - (x->to < y->to);
}

/* Check that every byte belongs to exactly one tensor. */
static int check_extents(struct extent *extent, size_t n, int64_t data_len, struct err *err)
{
    int64_t at = 0;

    qsort(extent, n, sizeof(*extent), by_offset);
    for (size_t i = 0; i < n; i++) {
        if (extent[i].from != at)
            return err_set(err, ERR_INVALID,
                           "data_offsets: a tensor begins at %" PRId64 ", expected %" PRId64, extent[i].from,
                           at);
        at = extent[i].to;
    }
    if (at != data_len)
        return err_set(err, ERR_INVALID, "data: %" PRId64 " bytes, but the tensors are %" PRId64, data_len,
                       at);
    return 0;
}

static int parse_header(const struct json_at *header, const uint8_t *data, int64_t data_len, struct arena *a,
                        struct tensor_list *ret, struct err *err)
{
    size_t max = (size_t)cJSON_GetArraySize(header->node);
    struct tensor_row *row = arena_array(a, max + 1, struct tensor_row);
    struct extent *extent = arena_array(a, max + 1, struct extent);
    const cJSON *entry;
    size_t n = 0;

    if (!cJSON_IsObject(header->node))
        return json_err(header, err, "expected an object");
    cJSON_ArrayForEach(entry, header->node)
    {
        struct json_at at = {entry, header, entry->string, 0};
        if (strcmp(entry->string, "__metadata__") == 0)
            continue;
        if (parse_tensor(&at, data, data_len, &row[n].tensor, &extent[n], err))
            return -1;
        row[n++].name = arena_strdup(a, entry->string);
    }
    *ret = (struct tensor_list){row, n};
    return check_extents(extent, n, data_len, err);
}

int safetensors_parse(const void *bytes, size_t len, struct arena *a, struct tensor_list *ret,
                      struct err *err)
{
    const uint8_t *p = bytes;

    if (len < LENGTH_BYTES || len > INT64_MAX)
        return err_set(err, ERR_INVALID, "%zu bytes, expected at least %d", len, LENGTH_BYTES);
    const uint64_t header = le_get(p, LENGTH_BYTES);
    if (header > SAFETENSORS_HEADER_BYTES || header > len - LENGTH_BYTES)
        return err_set(err, ERR_INVALID, "header length: %" PRIu64 ", but the file has %zu bytes", header,
                       len);
    const char *text = (const char *)p + LENGTH_BYTES;
    cleanup_json cJSON *tree = json_parse(text, header, err);
    if (!tree)
        return err_wrap(err, "header");
    struct json_at at = json_root(tree, "header");
    return parse_header(&at, p + LENGTH_BYTES + header, (int64_t)(len - LENGTH_BYTES - header), a, ret, err);
}
