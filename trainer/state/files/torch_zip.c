/* torch_zip.c - write zip records in the layout of PyTorch's writer, so that its readers' shortcuts work.
 *
 * Every record is uncompressed; its size and CRC follow it in a descriptor; an extra field "FB" pads to the
 * alignment. torch.load can compute payload offsets from this layout without reading headers.
 */
#include "trainer/state/files/torch_zip.h"
#include "common/endian.h"

#include "trainer/state/files/pickle.h"

#include <inttypes.h>
#include <string.h>
#include <zlib.h>

enum {
    LOCAL_BYTES = 30,
    CENTRAL_BYTES = 46,
    ZIP64_EXTRA_BYTES = 4 + 3 * 8,
    PADDING_EXTRA_BYTES = 4 + TORCH_ZIP_ALIGN,
    DESCRIPTOR_BYTES = 24,
    END_BYTES = 56 + 20 + 22,
    FLAG_DESCRIPTOR = 0x0008,
    FLAG_UTF8 = 0x0800,
    ZIP64_VERSION = 45,
    MADE_BY = 0x031e,
    CRC_CHUNK_BYTES = 1 << 20, /* keeps the checksum and the write in the cache */
};

struct record {
    const char *name;
    uint64_t offset; /* of the local header */
    uint64_t size;
    uint32_t crc;
};

struct zip {
    const struct pt_sink *sink;
    struct err *err;
    bool failed; /* the sink: nothing more is written */
    struct arena *arena;
    const char *folder;
    uint64_t at;
    struct record *record;
    size_t len;
    uint64_t names_hash;
    uint64_t crcs_hash;
};

/* Little-endian fields into a header of known size. */
struct fields {
    uint8_t *p;
    size_t len;
};

static void put(struct fields *f, uint64_t v, size_t bytes)
{
    le_put(f->p + f->len, v, bytes);
    f->len += bytes;
}

static uint64_t or_max32(uint64_t v)
{
    return v < UINT32_MAX ? v : UINT32_MAX;
}

/* An empty record has no descriptor. */
static uint64_t flags_of(const struct record *r)
{
    return r->size ? FLAG_UTF8 | FLAG_DESCRIPTOR : FLAG_UTF8;
}

static void emit(struct zip *z, const void *bytes, size_t len)
{
    if (len && !z->failed)
        z->failed = z->sink->write(z->sink->ctx, bytes, len, z->err) != 0;
    z->at += len;
}

/* The Zip64 field: what does not fit its 32 bits; 0 bytes when everything fits. */
static void put_zip64(struct fields *f, uint64_t size, uint64_t offset)
{
    bool big = size >= UINT32_MAX;
    bool far = offset >= UINT32_MAX;

    if (!big && !far)
        return;
    put(f, 1, 2);
    put(f, (big ? 16U : 0U) + (far ? 8U : 0U), 2);
    if (big) {
        put(f, size, 8);
        put(f, size, 8);
    }
    if (far)
        put(f, offset, 8);
}

static void emit_local(struct zip *z, const struct record *r)
{
    uint8_t zip64[ZIP64_EXTRA_BYTES];
    uint8_t header[LOCAL_BYTES];
    uint8_t padding[PADDING_EXTRA_BYTES];
    struct fields x = {zip64, 0};
    struct fields h = {header, 0};
    struct fields pad = {padding, 0};
    size_t name_len = strlen(r->name);

    put_zip64(&x, r->size, r->offset);
    uint64_t unpadded = z->at + LOCAL_BYTES + name_len + x.len + 4;
    size_t fill = (size_t)(-unpadded % TORCH_ZIP_ALIGN);
    put(&pad, 'F' | 'B' << 8, 2);
    put(&pad, fill, 2);
    memset(padding + pad.len, 'Z', fill);
    pad.len += fill;
    put(&h, 0x04034b50, 4);
    put(&h, 0, 2);
    put(&h, flags_of(r), 2);
    put(&h, 0, 2 + 4); /* stored; no time or date, so that equal values make equal files */
    put(&h, 0, 8);     /* CRC and sizes: in the descriptor */
    put(&h, 0, 4);
    put(&h, name_len, 2);
    put(&h, x.len + pad.len, 2);
    emit(z, header, h.len);
    emit(z, r->name, name_len);
    emit(z, zip64, x.len);
    emit(z, padding, pad.len);
}

static void emit_payload(struct zip *z, struct record *r, const void *bytes)
{
    const uint8_t *p = bytes;
    uLong crc = crc32(0, NULL, 0);

    for (uint64_t left = r->size; left && !z->failed;) {
        size_t n = left < CRC_CHUNK_BYTES ? (size_t)left : CRC_CHUNK_BYTES;
        crc = crc32(crc, p, (uInt)n);
        emit(z, p, n);
        p += n;
        left -= n;
    }
    r->crc = (uint32_t)crc;
}

static void emit_descriptor(struct zip *z, const struct record *r)
{
    uint8_t bytes[DESCRIPTOR_BYTES];
    struct fields f = {bytes, 0};
    size_t width = r->size >= UINT32_MAX || r->offset >= UINT32_MAX ? 8 : 4;

    put(&f, 0x08074b50, 4);
    put(&f, r->crc, 4);
    put(&f, r->size, width);
    put(&f, r->size, width);
    emit(z, bytes, f.len);
}

static uint64_t mix(uint64_t hash, uint64_t v)
{
    return (hash ^ v) * 0x9e3779b97f4a7c15ULL;
}

static void add_record(struct zip *z, const char *name, const void *bytes, uint64_t size)
{
    struct record *r = &z->record[z->len++];

    *r = (struct record){
        .name = arena_printf(z->arena, "%s/%s", z->folder, name),
        .offset = z->at,
        .size = size,
    };
    emit_local(z, r);
    emit_payload(z, r, bytes);
    if (size)
        emit_descriptor(z, r);
    for (const char *p = name; *p; p++)
        z->names_hash = mix(z->names_hash, (uint8_t)*p);
    z->crcs_hash = mix(z->crcs_hash, r->crc);
}

static void add_text(struct zip *z, const char *name, const char *text)
{
    add_record(z, name, text, strlen(text));
}

static void emit_central(struct zip *z, const struct record *r)
{
    uint8_t zip64[ZIP64_EXTRA_BYTES];
    uint8_t header[CENTRAL_BYTES];
    struct fields x = {zip64, 0};
    struct fields h = {header, 0};
    size_t name_len = strlen(r->name);

    put_zip64(&x, r->size, r->offset);
    put(&h, 0x02014b50, 4);
    put(&h, 0, 4);
    put(&h, flags_of(r), 2);
    put(&h, 0, 2 + 4);
    put(&h, r->crc, 4);
    put(&h, or_max32(r->size), 4);
    put(&h, or_max32(r->size), 4);
    put(&h, name_len, 2);
    put(&h, x.len, 2);
    put(&h, 0, 2 + 2 + 2); /* no comment, one disk, no attributes */
    put(&h, 0, 4);
    put(&h, or_max32(r->offset), 4);
    emit(z, header, h.len);
    emit(z, r->name, name_len);
    emit(z, zip64, x.len);
}

/* The Zip64 end, its locator, the classic end: always all three, as torch.save does. */
static void emit_end(struct zip *z, uint64_t central_at)
{
    uint8_t bytes[END_BYTES];
    struct fields f = {bytes, 0};
    uint64_t end_at = z->at;
    uint64_t central_len = end_at - central_at;
    uint64_t count = z->len < UINT16_MAX ? z->len : UINT16_MAX;

    put(&f, 0x06064b50, 4);
    put(&f, 44, 8);
    put(&f, MADE_BY, 2);
    put(&f, ZIP64_VERSION, 2);
    put(&f, 0, 8);
    put(&f, z->len, 8);
    put(&f, z->len, 8);
    put(&f, central_len, 8);
    put(&f, central_at, 8);
    put(&f, 0x07064b50, 4);
    put(&f, 0, 4);
    put(&f, end_at, 8);
    put(&f, 1, 4);
    put(&f, 0x06054b50, 4);
    put(&f, 0, 4);
    put(&f, count, 2);
    put(&f, count, 2);
    put(&f, or_max32(central_len), 4);
    put(&f, or_max32(central_at), 4);
    put(&f, 0, 2);
    emit(z, bytes, f.len);
}

static void write_records(struct zip *z, const struct buf *pickle, const struct storages *storages)
{
    char name[32];
    char id[41];

    add_record(z, "data.pkl", pickle->data, pickle->len);
    add_text(z, ".format_version", "1");
    add_text(z, ".storage_alignment", "64");
    add_text(z, "byteorder", "little");
    for (int32_t i = 0; i < storages->len; i++) {
        snprintf(name, sizeof(name), "data/%" PRId32, i);
        add_record(z, name, storages->of[i].data, storages->of[i].bytes);
    }
    add_text(z, "version", "3\n");
    snprintf(id, sizeof(id), "%020" PRIu64 "%020" PRIu64, z->names_hash, z->crcs_hash);
    add_text(z, ".data/serialization_id", id);
}

int torch_zip_write(const struct tensor_list *list, const char *name, const struct pt_sink *sink,
                    struct err *err)
{
    enum { FIXED_RECORDS = 6 };
    cleanup_arena struct arena arena = {0};
    cleanup_buf struct buf pickle = BUF_INIT(TORCH_ZIP_PICKLE_BYTES);
    struct storages storages;

    if (pickle_encode(list, &arena, &pickle, &storages, err))
        return -1;
    struct zip z = {.sink = sink, .err = err, .arena = &arena, .folder = name};
    z.record = arena_array(&arena, (size_t)storages.len + FIXED_RECORDS, struct record);
    write_records(&z, &pickle, &storages);
    const uint64_t central_at = z.at;
    for (size_t i = 0; i < z.len; i++)
        emit_central(&z, &z.record[i]);
    emit_end(&z, central_at);
    return z.failed ? -1 : 0;
}
