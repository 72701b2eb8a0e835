/* llmc.c - read and write llm.c's weight files: a header of 256 numbers, then tensors in a fixed order. */
#include "trainer/state/weights/llmc.h"
#include "common/endian.h"

#include <inttypes.h>
#include <string.h>

void llmc_tensors(const struct llmc_header *h, struct llmc_tensor out[static LLMC_TENSORS])
{
    const int64_t c = h->width;
    const struct llmc_tensor all[LLMC_TENSORS] = {
        {"wte.weight", false, 2, {h->vocab, c}},
        {"wpe.weight", false, 2, {h->positions, c}},
        {"ln_1.weight", true, 1, {c}},
        {"ln_1.bias", true, 1, {c}},
        {"attn.c_attn.weight", true, 2, {3 * c, c}},
        {"attn.c_attn.bias", true, 1, {3 * c}},
        {"attn.c_proj.weight", true, 2, {c, c}},
        {"attn.c_proj.bias", true, 1, {c}},
        {"ln_2.weight", true, 1, {c}},
        {"ln_2.bias", true, 1, {c}},
        {"mlp.c_fc.weight", true, 2, {4 * c, c}},
        {"mlp.c_fc.bias", true, 1, {4 * c}},
        {"mlp.c_proj.weight", true, 2, {c, 4 * c}},
        {"mlp.c_proj.bias", true, 1, {c}},
        {"ln_f.weight", false, 1, {c}},
        {"ln_f.bias", false, 1, {c}},
    };

    memcpy(out, all, sizeof(all));
}

static int32_t i32_at(const uint8_t *p, int field)
{
    return (int32_t)le_get32(p + (ptrdiff_t)4 * field);
}

bool llmc_is(const void *bytes, size_t len)
{
    return len >= 4 && i32_at(bytes, 0) == LLMC_MAGIC;
}

static const struct {
    const char *name;
    size_t offset;
    int32_t max;
} FIELDS[] = {
    {"version", offsetof(struct llmc_header, version), LLMC_BF16},
    {"positions", offsetof(struct llmc_header, positions), LLMC_SIDE_MAX},
    {"vocabulary", offsetof(struct llmc_header, vocab), LLMC_SIDE_MAX},
    {"layers", offsetof(struct llmc_header, layers), LLMC_LAYERS_MAX},
    {"heads", offsetof(struct llmc_header, heads), LLMC_SIDE_MAX},
    {"width", offsetof(struct llmc_header, width), LLMC_SIDE_MAX},
    {"padded vocabulary", offsetof(struct llmc_header, padded_vocab), LLMC_SIDE_MAX},
};

static int parse_header(const uint8_t *p, size_t len, struct llmc_header *h, struct err *err)
{
    if (len < LLMC_HEADER)
        return err_set(err, ERR_INVALID, "%zu bytes, expected a header of %d", len, LLMC_HEADER);
    if (!llmc_is(p, len))
        return err_set(err, ERR_INVALID, "magic: %" PRId32 ", expected %d", i32_at(p, 0), LLMC_MAGIC);
    for (size_t i = 0; i < ARRAY_LEN(FIELDS); i++) {
        int32_t v = i32_at(p, (int)i + 1);
        if (v < 1 || v > FIELDS[i].max)
            return err_set(err, ERR_INVALID, "%s: %" PRId32 ", expected 1..%" PRId32, FIELDS[i].name, v,
                           FIELDS[i].max);
        memcpy((char *)h + FIELDS[i].offset, &v, sizeof(v));
    }
    if (h->version != LLMC_F32 && h->version != LLMC_BF16)
        return err_set(err, ERR_INVALID, "version: %" PRId32 ", expected %d (f32) or %d (bf16)", h->version,
                       LLMC_F32, LLMC_BF16);
    if (h->padded_vocab < h->vocab)
        return err_set(err, ERR_INVALID, "padded vocabulary: %" PRId32 ", expected at least %" PRId32,
                       h->padded_vocab, h->vocab);
    if (h->width % h->heads)
        return err_set(err, ERR_INVALID, "heads: %" PRId32 ", expected a divisor of the width (%" PRId32 ")",
                       h->heads, h->width);
    return 0;
}

static enum pt_dtype dtype_of(const struct llmc_header *h)
{
    return h->version == LLMC_BF16 ? PT_BF16 : PT_F32;
}

/* In floating point: up to 2^10 * 2^2 * 2^24 * 2^24 elements cannot wrap, and a sum that is not exact is no file's. */
static double elements_of(const struct llmc_header *h)
{
    struct llmc_tensor t[LLMC_TENSORS];
    double sum = 0;

    llmc_tensors(h, t);
    for (int i = 0; i < LLMC_TENSORS; i++)
        sum += (t[i].block ? h->layers : 1.0) * (double)t[i].dim[0] *
               (t[i].dims == 2 ? (double)t[i].dim[1] : 1.0);
    return sum + ((double)h->padded_vocab - h->vocab) * h->width;
}

static struct pt_tensor tensor_of(const struct llmc_tensor *t, enum pt_dtype dtype, const void *data)
{
    return (struct pt_tensor){.data = data, .dtype = dtype, .dims = t->dims, .dim = {t->dim[0], t->dim[1]}};
}

static const char *name_of(const struct llmc_tensor *t, int32_t layer, struct arena *a)
{
    return t->block ? arena_printf(a, "h.%" PRId32 ".%s", layer, t->name) : t->name;
}

int llmc_parse(const void *bytes, size_t len, struct arena *a, struct llmc_header *h,
               struct tensor_list *list, struct err *err)
{
    struct llmc_tensor t[LLMC_TENSORS];
    const uint8_t *p = bytes;

    if (parse_header(p, len, h, err))
        return -1;
    enum pt_dtype dtype = dtype_of(h);
    double want = elements_of(h) * (double)pt_dtype_bytes(dtype) + LLMC_HEADER;
    if (want != (double)len)
        return err_set(err, ERR_INVALID, "size: %zu bytes, expected %.0f by the header", len, want);
    struct tensor_row *row = arena_array(a, 4 + 12 * (size_t)h->layers, struct tensor_row);
    size_t n = 0;
    llmc_tensors(h, t);
    p += LLMC_HEADER;
    for (int i = 0; i < LLMC_TENSORS; i++) {
        for (int32_t layer = 0; layer < (t[i].block ? h->layers : 1); layer++) {
            row[n] = (struct tensor_row){name_of(&t[i], layer, a), tensor_of(&t[i], dtype, p)};
            p += pt_tensor_bytes(&row[n++].tensor);
        }
        if (i == 0)
            p += (size_t)(h->padded_vocab - h->vocab) * (size_t)h->width * pt_dtype_bytes(dtype);
    }
    *list = (struct tensor_list){row, n};
    return 0;
}

static int write_tensor(const char *name, const struct pt_tensor *want, const struct tensor_list *list,
                        const struct pt_sink *sink, struct err *err)
{
    for (size_t i = 0; i < list->len; i++) {
        const struct pt_tensor *t = &list->row[i].tensor;
        if (strcmp(list->row[i].name, name) != 0)
            continue;
        if (t->dtype != want->dtype || t->dims != want->dims || t->dim[0] != want->dim[0] ||
            (t->dims == 2 && t->dim[1] != want->dim[1]))
            return err_set(err, ERR_INVALID, "%s: another type or shape than the header's", name);
        return sink->write(sink->ctx, t->data, (size_t)pt_tensor_bytes(t), err);
    }
    return err_set(err, ERR_INVALID, "%s: is missing", name);
}

int llmc_write(const struct llmc_header *h, const struct tensor_list *list, const struct pt_sink *sink,
               struct err *err)
{
    cleanup_arena struct arena a = {0};
    struct llmc_tensor t[LLMC_TENSORS];
    const int32_t field[] = {LLMC_MAGIC, h->version, h->positions, h->vocab,
                             h->layers,  h->heads,   h->width,     h->vocab};
    uint8_t header[LLMC_HEADER] = {0};

    for (size_t i = 0; i < ARRAY_LEN(field); i++)
        le_put(header + 4 * i, (uint32_t)field[i], 4);
    if (sink->write(sink->ctx, header, sizeof(header), err))
        return -1;
    llmc_tensors(h, t);
    for (int i = 0; i < LLMC_TENSORS; i++) {
        struct pt_tensor want = tensor_of(&t[i], dtype_of(h), NULL);
        for (int32_t layer = 0; layer < (t[i].block ? h->layers : 1); layer++)
            if (write_tensor(name_of(&t[i], layer, &a), &want, list, sink, err))
                return -1;
    }
    return 0;
}
