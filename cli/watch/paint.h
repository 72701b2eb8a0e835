/* paint.h - bring a terminal from one frame to the next with one write and without flicker: only lines that changed are
 * written, each in its row, within one synchronized update. Pure.
 *
 * The terminal is in its alternate screen, the cursor hidden.
 * Ownership: paint_release frees the last frame.
 */
#ifndef TK_CLI_WATCH_PAINT_H
#define TK_CLI_WATCH_PAINT_H

#include "cli/watch/table.h"

struct paint {
    struct buf shown; /* the frame that is on the screen */
    bool known;       /* false: what is on the screen is not known, so that everything is written */
};

#define PAINT_INIT                                                                                           \
    {                                                                                                        \
        .shown = {.max = TABLE_BYTES_MAX }                                                                   \
    }

/* Append to `out` what turns the last frame into `frame`, whose lines end with '\n', at most `rows` of the terminal; nothing
 * where they are the same. */
void paint_frame(struct paint *p, const struct buf *frame, int rows, struct buf *out);

/* The screen was resized, or others wrote to it: the next frame is written as a whole. */
void paint_forget(struct paint *p);
void paint_release(struct paint *p);

#endif
