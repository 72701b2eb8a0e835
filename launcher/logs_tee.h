/* logs_tee.h - copy a rank's output from its pipe to its file and, line by line, to the console. */
#ifndef TK_LAUNCHER_LOGS_TEE_H
#define TK_LAUNCHER_LOGS_TEE_H

#include "common/buf.h"

/* Where whole lines go, each with the prefix before it. */
struct tee_out {
    struct buf *sink; /* NULL: not shown */
    const char *prefix;
    const char *const *filters; /* lines that contain one of them also go ... */
    int filtered;               /* ... into this file; -1: none */
};

/* Take `len` bytes of a stream: whole lines go out; the rest waits in `line`. A line longer than the buffer is cut
 * into several. The caller has made sure that the sink has room for len bytes and their prefixes (logs_tee_room). */
void logs_tee_take(struct buf *line, const struct tee_out *out, const char *bytes, size_t len);

/* End an open line. */
void logs_tee_flush(struct buf *line, const struct tee_out *out);

/* How many bytes may be taken so that the sink surely has room, were each a line of its own. */
size_t logs_tee_room(const struct buf *line, const struct buf *sink, const char *prefix);

#endif
