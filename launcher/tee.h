/* tee.h - split a stream that the launcher copies to a file and to the console into lines, for the console and for
 * the file of filtered lines. logs_tee.c calls
 * it. No system calls but writes to that file.
 *
 * A line ends with "\n", "\r\n" or "\r". Progress bars are redrawn by "\r": each state of the bar becomes a
 * line, as in PyTorch's launcher, written when the next state begins. An empty state is not
 * output; an empty line that ends with "\n" or "\r\n" is.
 */
#ifndef TK_LAUNCHER_TEE_H
#define TK_LAUNCHER_TEE_H

#include "common/buf.h"

#include <stdbool.h>

/* The unfinished line of a stream. */
struct tee_line {
    struct buf text;
    bool returned; /* a "\r" follows it; the next byte shows whether it is part of "\r\n" */
};

/* Where lines go, each after the prefix. */
struct tee_out {
    struct buf *sink; /* for the console; NULL: do not show it */
    const char *prefix;
    /* Texts, ended by NULL: lines that contain one also go to the file `filtered` (-1: none). NULL: no texts. */
    const char *const *filters;
    int filtered;
};

/* Process `len` bytes of a stream: output complete lines, keep the rest in *line. Of a line
 * longer than line->text.max each part is output as a line. The sink must have room for len bytes and their
 * prefixes (tee_room), else lines are lost. Without memory the rest of the bytes is dropped; a failed write to
 * `filtered` loses that line. */
void tee_take(struct tee_line *line, const struct tee_out *out, const char *bytes, size_t len);

/* Output an unfinished line, if there is one. */
void tee_flush(struct tee_line *line, const struct tee_out *out);

/* How many bytes the caller may pass to tee_take so that the sink has room, even if each byte is a separate
 * line and the line before fills its buffer. The sink is not NULL. */
size_t tee_room(const struct tee_line *line, const struct buf *sink, const char *prefix);

/* Empty the unfinished line without output. Memory over 64 KiB is freed. */
void tee_clear(struct tee_line *line);

#endif
