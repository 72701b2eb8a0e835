/* tee.h - cut a teed stream into lines for the console and for the file of filtered lines. No system calls but writes
 * to that file.
 *
 * A line ends with "\n", "\r\n" or "\r". The last is how a progress bar is redrawn: each state of it is a line, as from PyTorch's
 * launcher, shown when the next one begins; an empty one is not shown.
 */
#ifndef TK_LAUNCHER_TEE_H
#define TK_LAUNCHER_TEE_H

#include "common/buf.h"

#include <stdbool.h>

/* The unfinished line of a stream. */
struct tee_line {
    struct buf text;
    bool returned; /* a "\r" came behind it; the next byte says whether that is half of "\r\n" */
};

/* Where lines go, each after the prefix. */
struct tee_out {
    struct buf *sink; /* for the console; NULL: not shown */
    const char *prefix;
    /* Texts, ended by NULL: lines that contain one also go to the file `filtered` (-1: none). NULL: no texts. */
    const char *const *filters;
    int filtered;
};

/* Process `len` bytes of a stream: output complete lines, keep the rest in *line. A line longer than its buffer
 * is cut into several; it waits whole in memory. The sink must have room for len bytes and their prefixes (tee_room), else lines are lost. */
void tee_take(struct tee_line *line, const struct tee_out *out, const char *bytes, size_t len);

/* Output an unfinished line, if there is one. */
void tee_flush(struct tee_line *line, const struct tee_out *out);

/* How many bytes may be passed to tee_take so that the sink has room even if each byte is a line of its own and
 * the line before is as long as its buffer. */
size_t tee_room(const struct tee_line *line, const struct buf *sink, const char *prefix);

/* Forget what is unfinished. */
void tee_clear(struct tee_line *line);

#endif
