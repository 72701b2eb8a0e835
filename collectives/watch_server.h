/* watch_server.h - the watch: rank 0's thread that introduces the ranks to each other and notices who is lost.
 *
 * Every rank keeps one connection to it. It tells all when one of them breaks, leaves, or fails; and answers a rank whose
 * deadline has passed who else was still missing. Since it has a thread of its own, a rank that computes delays nobody's
 * news.
 *
 * Ownership: watch_server_start to watch_server_stop.
 * Threads:   the thread shares nothing with the rank that hosts it but the descriptor that ends it.
 * Errors:    a connection that does not say the token in time is dropped and counted.
 */
#ifndef TK_COLLECTIVES_WATCH_SERVER_H
#define TK_COLLECTIVES_WATCH_SERVER_H

#include "collectives/watch_wire.h"

struct watch_server;

struct watch_server *watch_server_start(int world, const uint8_t token[WATCH_TOKEN_BYTES], struct err *err);
int watch_server_port(const struct watch_server *s);
/* Connections dropped so far. Any thread may ask. */
uint32_t watch_server_unauthenticated(const struct watch_server *s);
void watch_server_stop(struct watch_server *s);

#endif
