/* idx.c - read an IDX file: check its header, then read exactly the bytes that it declares, up to the end of
 * the file. */
#include "trainer/data/idx.h"

#include "trainer/data/first_bytes.h"
#include "trainer/data/gzfile.h"

#include <inttypes.h>

enum { LABEL_HEADER_BYTES = 8, IMAGE_HEADER_BYTES = 16 };

static size_t header_bytes(enum idx_kind kind)
{
    return kind == IDX_IMAGES ? IMAGE_HEADER_BYTES : LABEL_HEADER_BYTES;
}

static uint32_t big_endian(const uint8_t *at)
{
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

size_t idx_bytes(const struct idx_shape *shape)
{
    return (size_t)shape->items * (size_t)shape->rows * (size_t)shape->cols;
}

static int read_side(const char *path, const char *field, const uint8_t *at, int32_t *ret, struct err *err)
{
    uint32_t v = big_endian(at);

    if (v < 1 || v > IDX_SIDE_MAX)
        return err_set(err, ERR_INVALID, "%s: %s: %" PRIu32 ", expected 1..%d", path, field, v, IDX_SIDE_MAX);
    *ret = (int32_t)v;
    return 0;
}

static int parse_header(const char *path, enum idx_kind kind, const uint8_t *header, struct idx_shape *ret,
                        struct err *err)
{
    struct idx_shape shape = {.rows = 1, .cols = 1};
    uint32_t magic = big_endian(header);
    uint32_t items = big_endian(header + 4);

    if (magic != (uint32_t)kind)
        return err_set(err, ERR_INVALID, "%s: magic number: %" PRIu32 ", expected %d (%s)", path, magic, kind,
                       kind == IDX_IMAGES ? "images" : "labels");
    if (items < 1 || items > INT32_MAX)
        return err_set(err, ERR_INVALID, "%s: items: %" PRIu32 ", expected 1..%d", path, items, INT32_MAX);
    shape.items = (int32_t)items;
    if (kind == IDX_IMAGES && (read_side(path, "rows", header + 8, &shape.rows, err) < 0 ||
                               read_side(path, "columns", header + 12, &shape.cols, err) < 0))
        return -1;
    /* 31 + 17 + 17 bits: the product of the three cannot wrap a uint64_t. */
    uint64_t bytes = (uint64_t)shape.items * (uint64_t)shape.rows * (uint64_t)shape.cols;
    if (bytes > IDX_BYTES_MAX)
        return err_set(err, ERR_INVALID, "%s: payload: %" PRIu64 " bytes, expected at most %zu", path, bytes,
                       IDX_BYTES_MAX);
    *ret = shape;
    return 0;
}

/* Compare the header with the most that a file of this size can contain, before memory is allocated. */
static int check_size(const char *path, const struct gzfile *g, enum idx_kind kind,
                      const struct idx_shape *shape, struct err *err)
{
    uint64_t want = header_bytes(kind) + idx_bytes(shape);
    uint64_t max = gzfile_max_bytes(g);

    if (want > max || (want < max && !gzfile_compressed(g)))
        return err_set(err, ERR_INVALID, "%s: size: %s%" PRIu64 " bytes, expected %" PRIu64 " by its header",
                       path, gzfile_compressed(g) ? "at most " : "", max, want);
    return 0;
}

static int read_header(const char *path, struct gzfile *g, enum idx_kind kind, struct idx_shape *ret,
                       struct err *err)
{
    uint8_t header[IMAGE_HEADER_BYTES];
    size_t want = header_bytes(kind);
    size_t got;

    if (gzfile_read(g, header, want, &got, err) < 0)
        return -1;
    if (got < want)
        err_set(err, ERR_INVALID, "%s: header: %zu bytes, expected %zu", path, got, want);
    else if (parse_header(path, kind, header, ret, err) == 0)
        return check_size(path, g, kind, ret, err);
    return first_bytes_refuse(path, kind == IDX_IMAGES ? "IDX images" : "IDX labels", err);
}

int idx_probe(const char *path, enum idx_kind kind, struct idx_shape *ret, struct err *err)
{
    struct idx_shape shape;
    cleanup_gzfile struct gzfile *g = gzfile_open(path, err);

    if (!g || read_header(path, g, kind, &shape, err) < 0)
        return -1;
    *ret = shape;
    return 0;
}

int idx_load(const char *path, enum idx_kind kind, const struct idx_shape *shape, uint8_t *dst,
             struct err *err)
{
    struct idx_shape now;
    size_t want = idx_bytes(shape);
    size_t got;
    uint8_t extra;
    cleanup_gzfile struct gzfile *g = gzfile_open(path, err);

    if (!g || read_header(path, g, kind, &now, err) < 0)
        return -1;
    if (now.items != shape->items || now.rows != shape->rows || now.cols != shape->cols)
        return err_set(err, ERR_INVALID, "%s: changed while it was read", path);
    if (gzfile_read(g, dst, want, &got, err) < 0)
        return -1;
    if (got < want)
        return err_set(err, ERR_INVALID, "%s: payload: %zu bytes, expected %zu", path, got, want);
    if (gzfile_read(g, &extra, 1, &got, err) < 0)
        return -1;
    if (got)
        return err_set(err, ERR_INVALID, "%s: payload: more than the expected %zu bytes", path, want);
    return 0;
}
