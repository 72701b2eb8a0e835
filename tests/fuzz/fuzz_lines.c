/* fuzz_lines.c - the lines of a stream do not depend on how its bytes arrive. Byte 0: the length of the pieces. */
#include "fuzz_pieces.h"
#include "fuzz_skim.h"

#include "kube/gather.h"

enum { LINE_MAX_BYTES = 64 };

static int on_line(void *ctx, struct sv line, struct skim *over, struct err *err)
{
    struct buf *out = ctx;

    if (over)
        return skim_append(over, out, err);

    MUST(line.len > 0 && line.len <= LINE_MAX_BYTES);
    MUST(!memchr(line.p, '\n', line.len));
    return buf_append(out, line.p, line.len, err) < 0 ? -1 : buf_append(out, "\n", 1, err);
}

static int cut(struct sv all, size_t piece, struct buf *out)
{
    struct gather l;
    struct err err = {0};
    int rc = 0;

    gather_init(&l, LINE_MAX_BYTES, true);
    while (rc == 0 && all.len)
        rc = gather_lines(&l, pieces_next(&all, piece), on_line, out, &err);
    MUST(rc == 0 || err.kind == ERR_INVALID);
    gather_release(&l);
    return rc;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    pieces_check(data, size, cut, true);
    return 0;
}
