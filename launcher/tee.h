/* tee.h - cut a teed stream into lines for the console and for the file of filtered lines. No system calls but writes
 * to that file.
 *
 * A line ends with "\n", "\r\n" or "\r". The last is how a progress bar is redrawn:
 *   - on a terminal the console gets the prefix, the text and "\r", at once, also of a text whose end has not come yet
 *     when a "\r" stands before it (tqdm). The next output of any rank erases it first (ESC [ K), so that whole lines
 *     stay whole and the bars of several ranks take turns on the terminal's last line. A bar wider than the terminal leaves
 *     a row with each redraw: the width is not asked for. An unfinished text of more than 300 bytes waits for its end;
 *   - elsewhere (a file, a pod's log) the console gets each state of the bar as a line, as from PyTorch's launcher,
 *     when the next one begins.
 */
#ifndef TK_LAUNCHER_TEE_H
#define TK_LAUNCHER_TEE_H

#include "common/buf.h"

#include <stdbool.h>

/* The unfinished line of a stream. */
struct tee_line {
    struct buf text;
    bool returned; /* a "\r" came behind it; the next byte says whether that is half of "\r\n" */
    bool redraws;  /* the line before it ended with "\r" */
    size_t drawn;  /* how many of its bytes stand on the terminal */
};

/* Where lines go, each after the prefix. */
struct tee_out {
    struct buf *sink; /* for the console; NULL: not shown */
    const char *prefix;
    /* The console is a terminal; set once something was redrawn there. NULL: it is none. */
    bool *redrawn;
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

/* Erase what was redrawn in the terminal's last line: goes before other text. "" when nothing was. */
const char *tee_erase(const bool *redrawn);

#endif
