/* watch_server.h - the watch: a thread at rank 0 that registers the ranks, sends each the addresses of all, and
 * detects lost ranks.
 *
 * Every rank keeps one connection to the watch. The watch reports to all ranks when a rank's connection breaks,
 * or a rank leaves or fails. A rank whose deadline has passed asks it which ranks are missing. Because the
 * watch has its own thread, it reports without delay while rank 0 computes. It also reports to waiting ranks
 * how the run has ended. open.c starts it.
 *
 * Ownership: watch_server_start creates a server, watch_server_stop ends its thread and frees it.
 * Threads:   the watch's thread shares with other threads only the descriptor that stops it and the arguments
 *            of watch_server_end. One thread calls start and stop.
 * Errors:    watch_server_start returns NULL: ERR_CONFLICT when the port is taken, else ERR_FATAL. The watch
 *            drops a connection that does not send the run id, and with a key its proof, within 5 s. It drops
 *            the oldest such connection after 0.25 s when there are 256 of them, or 64 from one address.
 */
#ifndef TK_COLLECTIVES_WATCH_SERVER_H
#define TK_COLLECTIVES_WATCH_SERVER_H

#include "collectives/watch_wire.h"

struct watch_server;

/* Start the watch of a run of `world` ranks and `awaiting` waiting ranks. It listens on all addresses at
 * `port`. restart_count: the restart count that the watch
 * reports to waiting ranks. */
struct watch_server *watch_server_start(int port, const struct pass *pass, int restart_count, int world,
                                        int awaiting, struct err *err);
/* Set the run's exit code. watch_server_stop sends it to the waiting ranks, and waits up to wait_ms until all
 * have read it. */
void watch_server_end(struct watch_server *s, int exit_code, int64_t wait_ms);
/* Waits up to 0.5 s until rank 0's connection has ended and pending messages are sent. Accepts NULL. */
void watch_server_stop(struct watch_server *s);

#endif
