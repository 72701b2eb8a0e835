/* torch_unzip.c - find the records of a .pt archive from its central directory. */
#include "trainer/state/files/torch_unzip.h"
#include "common/endian.h"

#include "trainer/state/files/pickle_memo.h"
#include "trainer/state/files/unpickle.h"

#include <inttypes.h>
#include <string.h>
#include <zlib.h>

/* Sizes and signatures of .ZIP File Format Specification 6.3.10, 4.3.7 to 4.3.16. */
enum {
    END_BYTES = 22,
    END64_BYTES = 56,
    LOCATOR_BYTES = 20,
    CENTRAL_BYTES = 46,
    LOCAL_BYTES = 30,
    COMMENT_BYTES = 65535,
    NAME_BYTES = 512,
    RECORDS_MAX = 1 << 18, /* names are looked up in a table of fixed width */
};
static const uint32_t END = 0x06054b50;
static const uint32_t END64 = 0x06064b50;
static const uint32_t LOCATOR = 0x07064b50;
static const uint32_t CENTRAL = 0x02014b50;
static const uint32_t LOCAL = 0x04034b50;

struct entry {
    const char *name; /* without the archive's folder */
    uint64_t size, local_at;
    uint32_t crc;
    bool checked;
    const uint8_t *data; /* when checked */
};

struct unzip {
    const uint8_t *bytes;
    uint64_t len;
    struct arena *arena;
    struct entry *entry;
    struct pickle_memo names; /* name to place in `entry` */
};

/* `n` bytes at `at`, or NULL. */
static const uint8_t *span(const struct unzip *z, uint64_t at, uint64_t n)
{
    return at <= z->len && n <= z->len - at ? z->bytes + at : NULL;
}

struct directory {
    uint64_t at, len, count;
};

/* The classic end stands last, before a comment of the length it names. */
static int find_end(const struct unzip *z, uint64_t *ret, struct err *err)
{
    uint64_t lowest = z->len > END_BYTES + COMMENT_BYTES ? z->len - END_BYTES - COMMENT_BYTES : 0;

    for (uint64_t at = z->len < END_BYTES ? 0 : z->len - END_BYTES + 1; at-- > lowest;) {
        const uint8_t *p = z->bytes + at;
        if (le_get(p, 4) == END && at + END_BYTES + le_get(p + 20, 2) == z->len) {
            *ret = at;
            return 0;
        }
    }
    return err_set(err, ERR_INVALID, "no zip archive, or cut off: its end is missing");
}

static int read_end(const struct unzip *z, struct directory *d, struct err *err)
{
    uint64_t at;

    if (find_end(z, &at, err))
        return -1;
    const uint8_t *p = z->bytes + at;
    *d = (struct directory){.count = le_get(p + 10, 2), .len = le_get(p + 12, 4), .at = le_get(p + 16, 4)};
    const uint8_t *locator = at >= LOCATOR_BYTES ? span(z, at - LOCATOR_BYTES, LOCATOR_BYTES) : NULL;
    if (locator && le_get(locator, 4) == LOCATOR) {
        const uint8_t *end64 = span(z, le_get(locator + 8, 8), END64_BYTES);
        if (!end64 || le_get(end64, 4) != END64)
            return err_set(err, ERR_INVALID, "the Zip64 end is not where the archive says");
        *d = (struct directory){
            .count = le_get(end64 + 32, 8), .len = le_get(end64 + 40, 8), .at = le_get(end64 + 48, 8)};
    }
    if (!span(z, d->at, d->len) || d->count > d->len / CENTRAL_BYTES || d->count > RECORDS_MAX)
        return err_set(err, ERR_INVALID,
                       "the directory (%" PRIu64 " bytes at %" PRIu64 ") is not in the file", d->len, d->at);
    return 0;
}

/* Fields of 32 bits that are all ones stand in the Zip64 extra field, in this order. */
static int apply_zip64(const uint8_t *extra, size_t len, struct entry *e, uint64_t *packed)
{
    uint64_t *const want[] = {&e->size, packed, &e->local_at};

    for (size_t at = 0; at + 4 <= len;) {
        size_t n = (size_t)le_get(extra + at + 2, 2);
        const uint8_t *p = extra + at + 4;
        if (n > len - at - 4)
            return -1;
        for (size_t i = 0; le_get(extra + at, 2) == 1 && i < ARRAY_LEN(want); i++) {
            if (*want[i] != UINT32_MAX)
                continue;
            if (n < 8)
                return -1;
            *want[i] = le_get(p, 8);
            p += 8;
            n -= 8;
        }
        at += 4 + (size_t)le_get(extra + at + 2, 2);
    }
    return 0;
}

/* One entry of the directory; *used is its length there. */
static int read_entry(struct unzip *z, const uint8_t *p, uint64_t left, struct entry *e, uint64_t *used,
                      struct err *err)
{
    if (left < CENTRAL_BYTES || le_get(p, 4) != CENTRAL)
        return err_set(err, ERR_INVALID, "the directory is damaged");
    size_t name = (size_t)le_get(p + 28, 2);
    size_t extra = (size_t)le_get(p + 30, 2);
    *used = CENTRAL_BYTES + name + extra + le_get(p + 32, 2);
    if (*used > left || !name || name > NAME_BYTES || memchr(p + CENTRAL_BYTES, 0, name))
        return err_set(err, ERR_INVALID, "the directory is damaged: a name of %zu bytes", name);
    const char *full = arena_strndup(z->arena, (const char *)p + CENTRAL_BYTES, name);
    const char *slash = strchr(full, '/');
    uint64_t packed = le_get(p + 20, 4);
    *e = (struct entry){.name = slash ? slash + 1 : full,
                        .crc = (uint32_t)le_get(p + 16, 4),
                        .size = le_get(p + 24, 4),
                        .local_at = le_get(p + 42, 4)};
    if (apply_zip64(p + CENTRAL_BYTES + name, extra, e, &packed) || packed != e->size || le_get(p + 10, 2) ||
        le_get(p + 8, 2) & 1)
        return err_set(err, ERR_INVALID, "%.60s: expected a record that is neither compressed nor encrypted",
                       full);
    return 0;
}

static int read_directory(struct unzip *z, struct err *err)
{
    struct directory d;

    if (read_end(z, &d, err))
        return -1;
    z->entry = arena_array(z->arena, (size_t)d.count + 1, struct entry);
    z->names.arena = z->arena;
    uint64_t used = 0;
    for (uint64_t i = 0, at = 0; i < d.count; i++, at += used) {
        if (read_entry(z, z->bytes + d.at + at, d.len - at, &z->entry[i], &used, err))
            return -1;
        if (pickle_memo_find(&z->names, PICKLE_MEMO_TEXT, z->entry[i].name) != PICKLE_MEMO_NONE)
            return err_set(err, ERR_INVALID, "%.60s: two records of one name", z->entry[i].name);
        pickle_memo_add(&z->names, PICKLE_MEMO_TEXT, z->entry[i].name);
    }
    return 0;
}

/* The bytes of a record, checked once; NULL with *err: not there or damaged. */
static struct entry *record(struct unzip *z, const char *name, struct err *err)
{
    int32_t place = pickle_memo_find(&z->names, PICKLE_MEMO_TEXT, name);

    if (place == PICKLE_MEMO_NONE) {
        err_set(err, ERR_INVALID, "%.60s: the archive has no such record", name);
        return NULL;
    }
    struct entry *e = &z->entry[place];
    if (e->checked)
        return e;
    const uint8_t *p = span(z, e->local_at, LOCAL_BYTES);
    uint64_t head = p ? LOCAL_BYTES + le_get(p + 26, 2) + le_get(p + 28, 2) : 0;
    if (!p || le_get(p, 4) != LOCAL || !span(z, e->local_at, head) || !span(z, e->local_at + head, e->size)) {
        err_set(err, ERR_INVALID, "%.60s: is not where the directory says", name);
        return NULL;
    }
    if (crc32_z(0, p + head, e->size) != e->crc) {
        err_set(err, ERR_INVALID, "%.60s: its checksum differs", name);
        return NULL;
    }
    e->data = p + head;
    e->checked = true;
    return e;
}

static int storage(void *ctx, const char *key, const void **ret, size_t *ret_bytes, struct err *err)
{
    struct unzip *z = ctx;
    char name[NAME_BYTES];

    if (snprintf(name, sizeof(name), "data/%s", key) >= (int)sizeof(name))
        return err_set(err, ERR_INVALID, "storage: a key of %zu bytes", strlen(key));
    const struct entry *e = record(z, name, err);
    if (!e)
        return -1;
    *ret = e->data;
    *ret_bytes = (size_t)e->size;
    return 0;
}

/* Old archives do not say; they are little-endian. */
static int check_byte_order(struct unzip *z, struct err *err)
{
    if (pickle_memo_find(&z->names, PICKLE_MEMO_TEXT, "byteorder") == PICKLE_MEMO_NONE)
        return 0;
    const struct entry *e = record(z, "byteorder", err);
    if (!e)
        return -1;
    if (e->size != 6 || memcmp(e->data, "little", 6) != 0)
        return err_set(err, ERR_INVALID, "byteorder: expected little");
    return 0;
}

int torch_zip_read(const void *bytes, size_t len, struct arena *a, struct pt_value *ret, struct err *err)
{
    struct unzip *z = arena_new(a, struct unzip);
    struct unpickle_source source = {storage, z};

    *z = (struct unzip){.bytes = bytes, .len = len, .arena = a};
    if (read_directory(z, err) || check_byte_order(z, err))
        return -1;
    const struct entry *pickle = record(z, "data.pkl", err);
    if (!pickle)
        return -1;
    if (unpickle(pickle->data, (size_t)pickle->size, &source, a, ret, err))
        return err_wrap(err, "data.pkl");
    return 0;
}
