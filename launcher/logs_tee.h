/* logs_tee.h - the moving of bytes from a rank's pipe to its file and, by lines, to a sink. Tested by itself. */
#ifndef TK_LAUNCHER_LOGS_TEE_H
#define TK_LAUNCHER_LOGS_TEE_H

#include "common/buf.h"

/* Take `len` bytes of a stream: whole lines go to `sink` with `prefix` before each; the rest waits in `line`. A line
 * longer than the buffer is cut into several. `sink` NULL: nothing is shown. The caller has made sure that the sink
 * has room for len bytes and their prefixes (logs_tee_room). */
void logs_tee_take(struct buf *line, struct buf *sink, const char *prefix, const char *bytes, size_t len);

/* End an open line. */
void logs_tee_flush(struct buf *line, struct buf *sink, const char *prefix);

/* How many bytes may be taken so that the sink surely has room, were each a line of its own. */
size_t logs_tee_room(const struct buf *line, const struct buf *sink, const char *prefix);

#endif
