/* fuzz_lines.c - the lines of a stream do not depend on how its bytes arrive. Byte 0: the length of the pieces. */
#include "fuzz.h"

#include "kube/lines.h"

#include <string.h>

enum { LINE_MAX_BYTES = 64 };

static int on_line(void *ctx, struct sv line, struct err *err)
{
    struct buf *out = ctx;

    MUST(line.len > 0 && line.len <= LINE_MAX_BYTES);
    MUST(!memchr(line.p, '\n', line.len));
    return buf_append(out, line.p, line.len, err) < 0 ? -1 : buf_append(out, "\n", 1, err);
}

static int cut(struct sv all, size_t piece, struct buf *out)
{
    struct lines l;
    struct err err = {0};
    int rc = 0;

    lines_init(&l, LINE_MAX_BYTES);
    for (size_t at = 0; rc == 0 && at < all.len; at += piece) {
        size_t n = piece < all.len - at ? piece : all.len - at;
        rc = lines_feed(&l, (struct sv){all.p + at, n}, on_line, out, &err);
    }
    MUST(rc == 0 || err.kind == ERR_INVALID);
    lines_release(&l);
    return rc;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cleanup_buf struct buf one = BUF_INIT(1 << 20);
    cleanup_buf struct buf many = BUF_INIT(1 << 20);

    if (size < 2 || size > 100000)
        return 0;
    struct sv all = {(const char *)data + 1, size - 1};
    int whole = cut(all, 1, &one);
    int pieces = cut(all, 1 + data[0] % 100U, &many);
    MUST(whole == pieces);
    MUST(strcmp(buf_str(&one), buf_str(&many)) == 0 && one.len == many.len);
    return 0;
}
