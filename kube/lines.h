/* lines.h - a byte stream cut into lines, whatever the sizes of its pieces. Each line is a JSON
 * object: one over the limit is not kept but skimmed. Pure.
 *
 * Ownership: lines_release frees the unfinished line. A line given out is borrowed for the callback.
 * Errors:    ERR_INVALID for a line without an end (gather.h); the stream is then useless.
 * Order:     a whole line inside one piece is given out without being copied. '\n' ends a line and is
 *            not part of it, nor is a '\r' before it; empty lines are skipped.
 */
#ifndef TK_KUBE_LINES_H
#define TK_KUBE_LINES_H

#include "kube/gather.h"

struct lines {
    struct gather part;
};

void lines_init(struct lines *l, size_t line_max_bytes);

/* The line, or else what was skimmed of it: then `line` is empty. -1 (with *err set) ends the feeding. */
typedef int lines_on_line(void *ctx, struct sv line, const struct skim *over, struct err *err);

int lines_feed(struct lines *l, struct sv bytes, lines_on_line *on_line, void *ctx,
               struct err *err) MUST_CHECK;

/* Forget the unfinished line and give its memory back. */
void lines_reset(struct lines *l);
void lines_release(struct lines *l);

#endif
