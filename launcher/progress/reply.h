/* reply.h - the reply of the launcher's HTTP server to one request. Pure.
 *
 * Served are GET and HEAD of /progress and /metrics (answer.h); a query behind the path is ignored, a body is not looked
 * at. Each reply says Connection: close.
 */
#ifndef TK_LAUNCHER_PROGRESS_REPLY_H
#define TK_LAUNCHER_PROGRESS_REPLY_H

#include "common/sv.h"
#include "launcher/progress/answer.h"

enum { REPLY_REQUEST_BYTES = 4096, REPLY_BYTES = ANSWER_BYTES + 512 };

/* Append the reply to the bytes received so far, at most REPLY_REQUEST_BYTES, to *out, which has room for REPLY_BYTES.
 * False: the request is not complete yet, and *out is as it was. */
bool reply_make(struct sv request, const struct answer *a, struct buf *out);

#endif
