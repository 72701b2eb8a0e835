/* lines.h - cut a byte stream into lines, each of them a JSON object; a line over the limit is only skimmed.
 * Pure.
 *
 * Ownership: lines_release frees the unfinished line. A line is borrowed for the callback.
 * Errors:    ERR_INVALID: a line that does not end (gather.h); the rest of the stream cannot be used.
 * Order:     a line that lies in one piece is passed on without a copy. '\n' ends a line and is not part of
 *            it, nor is a '\r' before it; empty lines are skipped.
 */
#ifndef TK_KUBE_LINES_H
#define TK_KUBE_LINES_H

#include "kube/gather.h"

struct lines {
    struct gather part;
};

void lines_init(struct lines *l, size_t line_max_bytes);

/* Gets one line; or, for one over the limit, an empty `line` and what was skimmed of it. -1 (with *err set)
 * ends lines_feed. */
typedef int lines_on_line(void *ctx, struct sv line, const struct skim *over, struct err *err);

int lines_feed(struct lines *l, struct sv bytes, lines_on_line *on_line, void *ctx,
               struct err *err) MUST_CHECK;

/* Forget the unfinished line and free its memory if it is large. */
void lines_reset(struct lines *l);
void lines_release(struct lines *l);

#endif
