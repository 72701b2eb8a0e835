/* logs_tee.h - copy a rank's output from its pipe to its file and, line by line, to the console. */
#ifndef TK_LAUNCHER_LOGS_TEE_H
#define TK_LAUNCHER_LOGS_TEE_H

#include "common/buf.h"

/* Where complete lines go, each after the prefix. */
struct tee_out {
    struct buf *sink; /* for the console; NULL: not shown */
    const char *prefix;
    /* Texts, ended by NULL: lines that contain one also go to the file `filtered` (-1: none). NULL: no texts. */
    const char *const *filters;
    int filtered;
};

/* Process `len` bytes of a stream: output complete lines, keep the rest in `line`. A line longer than that buffer
 * is cut into several. The sink must have room for len bytes and their prefixes (logs_tee_room), else lines are
 * lost. */
void logs_tee_take(struct buf *line, const struct tee_out *out, const char *bytes, size_t len);

/* Output an unfinished line, if there is one. */
void logs_tee_flush(struct buf *line, const struct tee_out *out);

/* How many bytes may be passed to logs_tee_take so that the sink has room even if each byte is a line of its
 * own. */
size_t logs_tee_room(const struct buf *line, const struct buf *sink, const char *prefix);

#endif
