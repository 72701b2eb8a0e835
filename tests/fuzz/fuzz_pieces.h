/* fuzz_pieces.h - for what reads a stream: what comes of it does not depend on how its bytes arrive.
 *
 * Byte 0 of the input is the length of the pieces; the others are the stream.
 */
#ifndef TK_TESTS_FUZZ_FUZZ_PIECES_H
#define TK_TESTS_FUZZ_FUZZ_PIECES_H

#include "fuzz.h"

#include "common/buf.h"
#include "common/sv.h"

#include <stdbool.h>
#include <string.h>

/* The next piece; an empty one at the end. */
static inline struct sv pieces_next(struct sv *rest, size_t piece)
{
    struct sv next = {rest->p, piece < rest->len ? piece : rest->len};

    *rest = (struct sv){rest->p + next.len, rest->len - next.len};
    return next;
}

/* Byte by byte, and in pieces. `read` feeds `all` to a new reader in pieces of that length; what it gives goes to `out`,
 * -1: it refuses the stream. `refused_too`: what came before a refusal is compared as well. */
static inline void pieces_check(const uint8_t *data, size_t size,
                                int (*read)(struct sv all, size_t piece, struct buf *out), bool refused_too)
{
    cleanup_buf struct buf one = BUF_INIT(1 << 22);
    cleanup_buf struct buf many = BUF_INIT(1 << 22);

    if (size < 2 || size > 100000)
        return;
    struct sv all = {(const char *)data + 1, size - 1};
    int whole = read(all, 1, &one);
    int pieces = read(all, 1 + data[0] % 100U, &many);
    MUST(whole == pieces);
    if (whole == 0 || refused_too)
        MUST(one.len == many.len && memcmp(buf_str(&one), buf_str(&many), one.len) == 0);
}

#endif
