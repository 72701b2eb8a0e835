/* serve.h - the launcher's HTTP server for GET /progress and GET /metrics (answer.h). tracker.c starts it.
 *
 * Limits:    clients are not authenticated, so the cost is bounded: 32 connections, each with 4 KiB of
 *            request and 2 s from accept to close; 320 new connections and 1,000 reads per second. When all
 *            slots are taken, a new connection displaces the oldest one, once that is 100 ms old.
 * Ownership: serve_stop frees what serve_start returns.
 * Threads:   one own thread. serve_set copies *a under a lock that is locked only for copies.
 * Errors:    ERR_CONFLICT: the port is taken. ERR_FATAL: a system call failed.
 */
#ifndef TK_LAUNCHER_PROGRESS_SERVE_H
#define TK_LAUNCHER_PROGRESS_SERVE_H

#include "launcher/progress/answer.h"

struct serve;

/* Listen on all addresses at `port` and serve *a until serve_set replaces it. NULL: *err. */
struct serve *serve_start(int port, const struct answer *a, struct err *err);
void serve_stop(struct serve *s); /* accepts NULL */

void serve_set(struct serve *s, const struct answer *a);

#endif
