/* lines.h - lines that a preset prints instead of the trainer's own: text with {words} in it. Pure.
 *
 * A preset that replaces another program prints that program's lines, because scripts read them. The preset's `print:`
 * gives their text.
 *
 * Errors: ERR_INVALID names the unknown word or the unmatched brace.
 */
#ifndef TK_TRAINER_CLI_LINES_H
#define TK_TRAINER_CLI_LINES_H

#include "common/cleanup.h"
#include "common/err.h"

#include <stdint.h>
#include <stdio.h>

enum { LINES_TEXT_MAX = 200 }; /* bytes of one line in a preset */

/* The values of the {words}; each member is one. */
struct lines_values {
    int64_t rank, world;
    int64_t epoch; /* from 0 */
    int64_t epochs, batch_size, steps, save_every;
    const char *save_path;
    double loss; /* sum of this rank's losses in the epoch's steps; three places are printed */
};

/* NULL: that line is not printed. */
struct lines_spec {
    const char *start;       /* rank 0, before anything else */
    const char *epoch_start; /* every rank */
    const char *epoch_end;   /* every rank */
    const char *epoch_all;   /* rank 0, then; its loss: the sum of the steps' means over all ranks */
    const char *saved;       /* rank 0, when the weights have been written */
};

int lines_check(const char *text, struct err *err) MUST_CHECK;

/* The line with its newline, in one write: ranks share the stream. `text` has been checked. */
void lines_print(FILE *out, const char *text, const struct lines_values *v);

#endif
