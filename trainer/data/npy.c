/* npy.c - parse the header of a NumPy .npy file and check that it describes a vector of uint16. */
#include "trainer/data/npy.h"

#include "common/endian.h"
#include "common/sv.h"
#include "trainer/data/first_bytes.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { HEADER_MAX = 4096 };
#define COUNT_MAX (INT64_C(1) << 38)

/* The value of 'key' in the dictionary's text, up to `end`; "missing" if there is no such key. */
static struct sv value_of(const char *text, const char *key, const char *end)
{
    char quoted[32];

    snprintf(quoted, sizeof(quoted), "'%s':", key);
    const char *at = strstr(text, quoted);
    if (!at)
        return sv_from("missing");
    at += strlen(quoted);
    at += strspn(at, " ");
    size_t len = strcspn(at, end);
    return (struct sv){at, len + (at[len] == ')')};
}

static int refuse(const char *path, const char *key, struct sv value, struct err *err)
{
    return err_set(err, ERR_INVALID, "%s: %s: %.*s, expected a vector of uint16, as tokens are stored", path,
                   key, value.len < 60 ? (int)value.len : 60, value.p);
}

/* Parse a header such as "{'descr': '<u2', 'fortran_order': False, 'shape': (3,), }". */
static int parse(const char *path, const char *text, int64_t *ret_count, struct err *err)
{
    struct sv type = value_of(text, "descr", ",}");
    struct sv shape = value_of(text, "shape", ")}");

    if (!sv_eq(type, "'<u2'"))
        return refuse(path, "descr", type, err);
    if (shape.len < 4 || shape.p[0] != '(' || !sv_ends(shape, ",)") ||
        !sv_i64((struct sv){shape.p + 1, shape.len - 3}, 1, COUNT_MAX, ret_count))
        return refuse(path, "shape", shape, err);
    return 0;
}

int npy_vector(const char *path, const void *file, size_t bytes, size_t *ret_first, int64_t *ret_count,
               struct err *err)
{
    const uint8_t *p = file;
    char text[HEADER_MAX + 1], name[FIRST_BYTES_NAME];
    const bool array = bytes >= 6 && memcmp(p, "\x93NUMPY", 6) == 0;

    if (!array && first_bytes_name(file, bytes, name))
        return err_set(err, ERR_INVALID, "%s: %s, expected a NumPy array", path, name);
    if (!array || bytes < 12 || p[6] < 1 || p[6] > 3)
        return err_set(err, ERR_INVALID, "%s: not a .npy file of version 1 to 3", path);
    size_t start = p[6] == 1 ? 10 : 12; /* the length has four bytes from version 2 on */
    size_t len = (size_t)le_get(p + 8, start - 8);
    if (len > HEADER_MAX || len > bytes - start)
        return err_set(err, ERR_INVALID, "%s: header: %zu bytes, expected at most %zu", path, len,
                       bytes - start < HEADER_MAX ? bytes - start : HEADER_MAX);
    memcpy(text, p + start, len);
    text[len] = '\0';
    if (parse(path, text, ret_count, err))
        return -1;
    *ret_first = start + len;
    uint64_t want = *ret_first + 2 * (uint64_t)*ret_count;
    return want == bytes
               ? 0
               : err_set(err, ERR_INVALID, "%s: size: %zu bytes, expected %" PRIu64 " by its header", path,
                         bytes, want);
}
