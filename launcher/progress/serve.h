/* serve.h - the launcher's small HTTP server: GET /progress and GET /metrics for whoever asks (answer.h).
 *
 * Limits:    whoever reaches the port may ask, so nothing that is sent costs more than this: 32 connections, each with
 *            4 KiB of request and 2 s from its accept to its end; 320 connections and 1,000 looks at them per second. When
 *            all places are taken, a new connection displaces the oldest one, once that is 100 ms old.
 * Ownership: serve_stop frees what serve_start returns.
 * Threads:   a thread of its own. serve_tell only copies *a, and waits at most for a copy.
 * Errors:    ERR_CONFLICT: the port is taken. ERR_FATAL: a system call failed.
 */
#ifndef TK_LAUNCHER_PROGRESS_SERVE_H
#define TK_LAUNCHER_PROGRESS_SERVE_H

#include "launcher/progress/answer.h"

struct serve;

/* Listen on all addresses at `port` and answer *a until told otherwise. NULL: *err. */
struct serve *serve_start(int port, const struct answer *a, struct err *err);
void serve_stop(struct serve *s); /* NULL: nothing happens */

void serve_tell(struct serve *s, const struct answer *a);

#endif
