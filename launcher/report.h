/* report.h - what the launcher leaves where Kubernetes looks for why a container ended.
 *
 * {"rank":3,"exitCode":137,"signal":9,"host":"j-node-3","message":"..."}, of 1 KiB at most: the numbers come first, so that a
 * report that is cut still says who it was, and of the message its end is kept, which says most.
 */
#ifndef TK_LAUNCHER_REPORT_H
#define TK_LAUNCHER_REPORT_H

#include "launcher/exit.h"

enum { REPORT_BYTES = 1024 };

/* `tail` is the end of what the rank wrote to stderr. Where the rank left a message in its error file too, the line of the
 * tail that has it is the last one of the report, or the message itself when there is none. Pure. */
void report_encode(const struct exit_worker *w, const char *host, const char *tail, struct buf *out);

/* Into `path`, unless something stands there already. The container's own programs may have put anything in the file's
 * place: only a regular file is written to, and no link is followed. ERR_INVALID, ERR_FATAL (code = errno). */
int report_write(const char *path, const struct buf *text, struct err *err) MUST_CHECK;

#endif
