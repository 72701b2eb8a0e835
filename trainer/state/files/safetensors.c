/* safetensors.c - read and write .safetensors: a JSON header, then the tensors' bytes. */
#include "trainer/state/files/safetensors.h"
#include "common/endian.h"

#include "common/json.h"
#include "trainer/state/files/pickle_memo.h"

#include <inttypes.h>
#include <string.h>

enum { LENGTH_BYTES = 8, HEADER_ALIGN = 8 };

/* Calls `visit` for all tensors, the widest elements first. */
static int by_width(const struct tensor_list *list,
                    int (*visit)(void *ctx, const struct tensor_row *row, struct err *err), void *ctx,
                    struct err *err)
{
    for (size_t width = 8; width; width /= 2)
        for (size_t i = 0; i < list->len; i++)
            if (pt_dtype_bytes(list->row[i].tensor.dtype) == width && visit(ctx, &list->row[i], err))
                return -1;
    return 0;
}

struct header {
    struct buf text;
    struct pickle_memo names;
    int64_t at;
};

static int describe(struct buf *out, const struct tensor_row *row, int64_t from, int64_t to, struct err *err)
{
    const struct pt_tensor *t = &row->tensor;

    if (buf_puts(out, ",", err) || json_write_string(row->name, out, err) ||
        buf_printf(out, err, ":{\"dtype\":\"%s\",\"shape\":[", pt_dtype_name(t->dtype)))
        return -1;
    for (int32_t i = 0; i < t->dims; i++)
        if (buf_printf(out, err, "%s%" PRId64, i ? "," : "", t->dim[i]))
            return -1;
    return buf_printf(out, err, "],\"data_offsets\":[%" PRId64 ",%" PRId64 "]}", from, to);
}

static int add_entry(void *ctx, const struct tensor_row *row, struct err *err)
{
    struct header *h = ctx;
    int64_t bytes = pt_tensor_bytes(&row->tensor);
    int64_t end;

    if (row->tensor.turned && (row->tensor.dims != 2 || row->tensor.dtype != PT_F32))
        return err_set(err, ERR_INVALID, "%.80s: only a matrix of f32 can be turned", row->name);
    if (bytes < 0 || __builtin_add_overflow(h->at, bytes, &end) || end > INT64_C(1) << 53)
        return err_set(err, ERR_INVALID, "%.80s: its shape is impossible", row->name);
    if (pickle_memo_find(&h->names, PICKLE_MEMO_TEXT, row->name) != PICKLE_MEMO_NONE)
        return err_set(err, ERR_INVALID, "%.80s: two tensors of one name", row->name);
    pickle_memo_add(&h->names, PICKLE_MEMO_TEXT, row->name);
    int rc = describe(&h->text, row, h->at, end, err);
    h->at = end;
    return rc;
}

struct output {
    const struct pt_sink *sink;
    struct arena *arena;
};

/* Some rows of the transpose at a time: as many numbers as lie side by side in a line of the cache. */
static int write_turned(const struct output *o, const struct pt_tensor *t, struct err *err)
{
    enum { ROWS = 16 };
    const size_t rows = (size_t)t->dim[0], width = (size_t)t->dim[1];
    const float *data = t->data;
    float *block = arena_array(o->arena, ROWS * width, float);

    for (size_t first = 0; first < rows; first += ROWS) {
        const size_t n = rows - first < ROWS ? rows - first : ROWS;
        for (size_t w = 0; w < width; w++)
            for (size_t k = 0; k < n; k++)
                block[k * width + w] = data[w * rows + first + k];
        if (o->sink->write(o->sink->ctx, block, n * width * sizeof(*block), err))
            return -1;
    }
    return 0;
}

static int write_tensor(void *ctx, const struct tensor_row *row, struct err *err)
{
    const struct output *o = ctx;
    size_t bytes = (size_t)pt_tensor_bytes(&row->tensor);

    if (row->tensor.turned)
        return write_turned(o, &row->tensor, err);
    return bytes ? o->sink->write(o->sink->ctx, row->tensor.data, bytes, err) : 0;
}

static int make_header(struct header *h, const struct tensor_list *list, struct err *err)
{
    if (buf_puts(&h->text, "{\"__metadata__\":{\"format\":\"pt\"}", err) ||
        by_width(list, add_entry, h, err) || buf_puts(&h->text, "}", err))
        return -1;
    while (h->text.len % HEADER_ALIGN)
        if (buf_puts(&h->text, " ", err))
            return -1;
    return 0;
}

int safetensors_write(const struct tensor_list *list, const struct pt_sink *sink, struct err *err)
{
    cleanup_arena struct arena arena = {0};
    struct header *h = arena_new(&arena, struct header);
    uint8_t length[LENGTH_BYTES];

    h->text.max = SAFETENSORS_HEADER_BYTES;
    h->names.arena = &arena;
    int rc = make_header(h, list, err);
    le_put(length, h->text.len, LENGTH_BYTES);
    if (!rc)
        rc = sink->write(sink->ctx, length, sizeof(length), err);
    if (!rc)
        rc = sink->write(sink->ctx, h->text.data, h->text.len, err);
    buf_release(&h->text);
    return rc ? -1 : by_width(list, write_tensor, &(struct output){sink, &arena}, err);
}

struct place {
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

/* An array of integers from 0 to 2^53, `max` at most; their number, or -1. */
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

/* {"dtype": ..., "shape": ..., "data_offsets": [begin, end]}, the bytes from `data` on. */
static int parse_tensor(const struct json_at *at, const uint8_t *data, int64_t data_len, struct pt_tensor *t,
                        struct place *place, struct err *err)
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
    *place = (struct place){offsets[0], offsets[1]};
    return 0;
}

static int by_place(const void *a, const void *b)
{
    const struct place *x = a;
    const struct place *y = b;

    if (x->from != y->from)
        return x->from < y->from ? -1 : 1;
    return (x->to > y->to) - (x->to < y->to);
}

/* Every byte belongs to one tensor: nothing hides between them, nothing overlaps. */
static int check_places(struct place *place, size_t n, int64_t data_len, struct err *err)
{
    int64_t at = 0;

    qsort(place, n, sizeof(*place), by_place);
    for (size_t i = 0; i < n; i++) {
        if (place[i].from != at)
            return err_set(err, ERR_INVALID,
                           "data_offsets: a tensor begins at %" PRId64 ", expected %" PRId64, place[i].from,
                           at);
        at = place[i].to;
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
    struct place *place = arena_array(a, max + 1, struct place);
    const cJSON *entry;
    size_t n = 0;

    if (!cJSON_IsObject(header->node))
        return json_err(header, err, "expected an object");
    cJSON_ArrayForEach(entry, header->node)
    {
        struct json_at at = {entry, header, entry->string, 0};
        if (strcmp(entry->string, "__metadata__") == 0)
            continue;
        if (parse_tensor(&at, data, data_len, &row[n].tensor, &place[n], err))
            return -1;
        row[n++].name = arena_strdup(a, entry->string);
    }
    *ret = (struct tensor_list){row, n};
    return check_places(place, n, data_len, err);
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
