/* watch_server.h - the watch: a thread at rank 0 that registers the ranks, sends each the addresses of all, and
 * detects lost ranks.
 *
 * Every rank keeps one connection to the watch. The watch reports to all ranks when a rank's connection breaks,
 * or a rank leaves or fails. A rank whose deadline has passed asks it which ranks are missing. Because the watch
 * has its own thread, it reports without delay while rank 0 computes. It also tells ranks that take no part how the run
 * has ended.
 *
 * Ownership: watch_server_start creates a server, watch_server_stop ends its thread and frees it.
 * Threads:   the watch's thread shares with other threads only the descriptor that stops it and what
 *            watch_server_end says. start and stop are for one thread.
 * Errors:    watch_server_start returns NULL: ERR_CONFLICT when the port is taken, else ERR_FATAL. A connection that
 *            does not send the run id, and where there is a key its proof, within 5 s (0.25 s when 256 others have not either, or 64
 *            from its address) is dropped.
 */
#ifndef TK_COLLECTIVES_WATCH_SERVER_H
#define TK_COLLECTIVES_WATCH_SERVER_H

#include "collectives/watch_wire.h"

struct watch_server;

/* Start the watch of a run of `world` ranks; `awaiting` others wait for its end. It listens on all addresses at
 * `port`. pass->run_id: shorter than WATCH_RUN_ID_BYTES. restart_count: the restart count that the watch
 * reports to waiting ranks. */
struct watch_server *watch_server_start(int port, const struct pass *pass, int restart_count, int world,
                                        int awaiting, struct err *err);
/* How the run has ended, for those that await it; watch_server_stop reports it and waits up to wait_ms until all have read
 * it. */
void watch_server_end(struct watch_server *s, int exit_code, int64_t wait_ms);
/* Waits up to 0.5 s until rank 0's connection has ended and pending messages are sent. Accepts NULL. */
void watch_server_stop(struct watch_server *s);

#endif
