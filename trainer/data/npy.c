/* npy.c - read a NumPy .npy file: parse its header, then convert its elements to float32. */
#include "trainer/data/npy.h"
#include "common/endian.h"

#include "common/sv.h"
#include "trainer/data/first_bytes.h"
#include "trainer/data/gzfile.h"
#include "trainer/data/layout.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { HEADER_MAX = 4096, BLOCK = 8192 };

static const struct type {
    const char *descr;
    size_t bytes;
} TYPES[] = {
    [NPY_U8] = {"|u1", 1},  [NPY_U16] = {"<u2", 2}, [NPY_I32] = {"<i4", 4},
    [NPY_I64] = {"<i8", 8}, [NPY_F32] = {"<f4", 4}, [NPY_F64] = {"<f8", 8},
};

/* What follows 'key': in the dictionary's text; p NULL when it is not there. */
static struct sv value_of(const char *text, const char *key)
{
    char quoted[32];

    snprintf(quoted, sizeof(quoted), "'%s':", key);
    const char *at = strstr(text, quoted);
    if (!at)
        return (struct sv){0};
    at += strlen(quoted);
    at += strspn(at, " ");
    return sv_from(at);
}

static int parse_type(const char *path, const char *text, struct npy *n, struct err *err)
{
    struct sv v = value_of(text, "descr");

    for (size_t i = 0; v.p && i < ARRAY_LEN(TYPES); i++)
        if (v.len > 5 && v.p[0] == '\'' && memcmp(v.p + 1, TYPES[i].descr, 3) == 0 && v.p[4] == '\'') {
            n->type = (enum npy_type)i;
            return 0;
        }
    return err_set(err, ERR_INVALID, "%s: descr: %.*s, expected '|u1', '<u2', '<i4', '<i8', '<f4' or '<f8'",
                   path, v.p ? (int)strcspn(v.p, ",}") : 7, v.p ? v.p : "missing");
}

static int parse_shape(const char *path, const char *text, struct npy *n, struct err *err)
{
    struct sv v = value_of(text, "shape");
    struct sv part;

    if (!v.p || v.p[0] != '(' || !memchr(v.p, ')', v.len))
        return err_set(err, ERR_INVALID, "%s: shape: expected a list of numbers in parentheses", path);
    struct sv inside = {v.p + 1, (size_t)((const char *)memchr(v.p, ')', v.len) - v.p) - 1};
    n->count = 1;
    while (sv_next(&inside, ',', &part)) {
        int64_t dim;
        part = sv_trim(part);
        if (!part.len && n->dims) /* "(3,)" */
            continue;
        if (n->dims == NPY_DIMS_MAX || !sv_i64(part, 1, INT32_MAX, &dim))
            return err_set(err, ERR_INVALID, "%s: shape: %.*s, expected 1..%d dimensions of 1..%d", path,
                           (int)strcspn(v.p, "}") < 60 ? (int)strcspn(v.p, "}") : 60, v.p, NPY_DIMS_MAX,
                           INT32_MAX);
        n->dim[n->dims++] = dim;
        if (__builtin_mul_overflow(n->count, dim, &n->count) || n->count > NPY_COUNT_MAX)
            return err_set(err, ERR_INVALID, "%s: shape: more than %" PRId64 " elements", path,
                           NPY_COUNT_MAX);
    }
    return n->dims
               ? 0
               : err_set(err, ERR_INVALID, "%s: shape: (), expected 1..%d dimensions", path, NPY_DIMS_MAX);
}

static int parse(const char *path, const char *text, struct npy *n, struct err *err)
{
    struct sv order = value_of(text, "fortran_order");

    if (parse_type(path, text, n, err))
        return -1;
    if (!order.p || !sv_starts(order, "False"))
        return err_set(err, ERR_INVALID,
                       "%s: fortran_order: %.4s, expected False: save numpy.ascontiguousarray of it", path,
                       order.p ? order.p : "none");
    return parse_shape(path, text, n, err);
}

static int read_exactly(struct gzfile *g, const char *path, void *dst, size_t len, const char *what,
                        struct err *err)
{
    size_t got;

    if (gzfile_read(g, dst, len, &got, err))
        return -1;
    return got == len ? 0
                      : err_set(err, ERR_INVALID, "%s: %s: %zu bytes, expected %zu", path, what, got, len);
}

/* Leaves `g` at the first element. */
static int read_header(const char *path, struct gzfile *g, struct npy *n, struct err *err)
{
    uint8_t start[12];
    char text[HEADER_MAX + 1];
    size_t extra = 0;

    if (read_exactly(g, path, start, 10, "header", err))
        return first_bytes_refuse(path, "a NumPy array", err);
    if (memcmp(start, "\x93NUMPY", 6) != 0 || start[6] < 1 || start[6] > 3) {
        err_set(err, ERR_INVALID, "%s: not a .npy file of version 1 to 3", path);
        return memcmp(start, "\x93NUMPY", 6) ? first_bytes_refuse(path, "a NumPy array", err) : -1;
    }
    if (start[6] > 1) { /* the length has four bytes from version 2 on */
        extra = 2;
        if (read_exactly(g, path, start + 10, 2, "header", err))
            return -1;
    }
    size_t len = (size_t)le_get(start + 8, 2 + extra);
    if (len > HEADER_MAX)
        return err_set(err, ERR_INVALID, "%s: header: %zu bytes, expected at most %d", path, len, HEADER_MAX);
    if (read_exactly(g, path, text, len, "header", err))
        return -1;
    text[len] = '\0';
    *n = (struct npy){0};
    if (parse(path, text, n, err))
        return -1;
    n->data = 10 + extra + len;
    uint64_t want = n->data + (uint64_t)n->count * TYPES[n->type].bytes;
    uint64_t max = gzfile_max_bytes(g);
    if (want > max || (want < max && !gzfile_compressed(g)))
        return err_set(err, ERR_INVALID, "%s: size: %" PRIu64 " bytes, expected %" PRIu64 " by its header",
                       path, max, want);
    return 0;
}

int npy_probe(const char *path, struct npy *ret, struct err *err)
{
    cleanup_gzfile struct gzfile *g = gzfile_open(path, err);

    return g ? read_header(path, g, ret, err) : -1;
}

/* Element `i` of a block as a number: exact, but for integers beyond 2^53. */
static double element(enum npy_type type, const uint8_t *block, size_t i)
{
    uint16_t u2;
    int32_t i4;
    int64_t i8;
    float f4;
    double f8;

    switch (type) {
    case NPY_U8:
        return block[i];
    case NPY_U16:
        memcpy(&u2, block + i * sizeof(u2), sizeof(u2));
        return u2;
    case NPY_I32:
        memcpy(&i4, block + i * sizeof(i4), sizeof(i4));
        return i4;
    case NPY_I64:
        memcpy(&i8, block + i * sizeof(i8), sizeof(i8));
        return (double)i8;
    case NPY_F32:
        memcpy(&f4, block + i * sizeof(f4), sizeof(f4));
        return (double)f4;
    case NPY_F64:
        memcpy(&f8, block + i * sizeof(f8), sizeof(f8));
        return f8;
    }
    return 0;
}

static int convert(const char *path, const struct npy *n, enum npy_as as, const uint8_t *block, int64_t first,
                   int64_t count, void *dst, struct err *err)
{
    for (int64_t i = 0; i < count; i++) {
        double v = element(n->type, block, (size_t)i);
        if (as == NPY_AS_LABELS) {
            if (!(v >= 0 && v <= LAYOUT_LABEL_MAX))
                return err_set(err, ERR_INVALID, "%s: element %" PRId64 ": %g, expected a label 0..%d", path,
                               first + i, v, LAYOUT_LABEL_MAX);
            ((int32_t *)dst)[first + i] = (int32_t)v;
        } else {
            float f = (float)v;
            if (!isfinite(f))
                return err_set(err, ERR_INVALID, "%s: element %" PRId64 ": %g, expected a finite number",
                               path, first + i, v);
            ((float *)dst)[first + i] = f;
        }
    }
    return 0;
}

static int check_as(const char *path, const struct npy *n, enum npy_as as, struct err *err)
{
    bool integers = n->type == NPY_U8 || n->type == NPY_U16 || n->type == NPY_I32 || n->type == NPY_I64;

    if ((as == NPY_AS_BYTES && n->type != NPY_U8) || (as == NPY_AS_LABELS && !integers))
        return err_set(err, ERR_INVALID, "%s: descr: '%s', expected %s", path, TYPES[n->type].descr,
                       as == NPY_AS_BYTES ? "'|u1'" : "integers, as labels are");
    return 0;
}

int npy_load(const char *path, const struct npy *n, enum npy_as as, void *dst, struct err *err)
{
    uint8_t block[BLOCK * 8];
    struct npy now;
    uint8_t more;
    size_t got;
    cleanup_gzfile struct gzfile *g = gzfile_open(path, err);

    if (!g || check_as(path, n, as, err) || read_header(path, g, &now, err))
        return -1;
    if (now.type != n->type || now.dims != n->dims || memcmp(now.dim, n->dim, sizeof(now.dim)) != 0)
        return err_set(err, ERR_INVALID, "%s: changed while it was read", path);
    if (as == NPY_AS_BYTES && read_exactly(g, path, dst, (size_t)n->count, "elements", err))
        return -1;
    for (int64_t first = 0; as != NPY_AS_BYTES && first < n->count; first += BLOCK) {
        int64_t count = n->count - first < BLOCK ? n->count - first : BLOCK;
        if (read_exactly(g, path, block, (size_t)count * TYPES[n->type].bytes, "elements", err) ||
            convert(path, n, as, block, first, count, dst, err))
            return -1;
    }
    if (gzfile_read(g, &more, 1, &got, err))
        return -1;
    return got ? err_set(err, ERR_INVALID, "%s: more bytes than its shape says", path) : 0;
}
