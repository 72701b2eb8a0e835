/* lines.h - a byte stream cut into lines, whatever the sizes of its pieces. Pure.
 *
 * Ownership: lines_release frees the unfinished line. A line given out is borrowed for the callback.
 * Errors:    ERR_INVALID for a line over the limit; the stream is then useless.
 * Order:     a whole line inside one piece is given out without being copied. '\n' ends a line and is
 *            not part of it, nor is a '\r' before it; empty lines are skipped.
 */
#ifndef TK_KUBE_LINES_H
#define TK_KUBE_LINES_H

#include "common/buf.h"
#include "common/cleanup.h"
#include "common/sv.h"

struct lines {
    struct buf part;
};

void lines_init(struct lines *l, size_t line_max_bytes);

/* on_line returning -1 (with *err set) ends the feeding. */
int lines_feed(struct lines *l, struct sv bytes, int (*on_line)(void *ctx, struct sv line, struct err *err),
               void *ctx, struct err *err) MUST_CHECK;

/* Forget the unfinished line and give its memory back. */
void lines_reset(struct lines *l);
void lines_release(struct lines *l);

#endif
