/* server.h - the server of a run's key-value store over TCP: in worker rank 0 for ranks, in a launcher for
 * launchers.
 *
 * Ownership: store_server_start creates a server, store_server_stop ends it and frees its keys. Nothing is stored
 *            on disk.
 * Threads:   the server runs one thread, so that it answers while its process is busy. That thread accesses
 *            nothing but the server.
 * Errors:    ERR_CONFLICT when the port is taken, ERR_FATAL for the rest. A client that sends an invalid request
 *            gets an error or is dropped; other clients are not affected. While the process has no free
 *            descriptor, or 256 recent connections have not presented the run id, new connections wait in the
 *            accept queue.
 * Order:     requests of one client are answered in order; a waiting request does not block other clients.
 */
#ifndef TK_RENDEZVOUS_SERVER_H
#define TK_RENDEZVOUS_SERVER_H

#include "common/cleanup.h"
#include "common/err.h"

#include <stddef.h>
#include <stdint.h>

struct store_server;

/* 0 in a field: the default, given here. */
struct store_server_limits {
    int clients;  /* 4096; a further one gets STATUS_CROWDED */
    size_t keys;  /* 65536 */
    size_t bytes; /* keys and values together: 64 MiB */
    int64_t
        speak_ms; /* 10000: from accept to a complete hello, and from a message's first byte to its last */
};

/* Listen on all addresses at `port` (0: any, see store_server_port). `limits` NULL: the defaults. NULL on
 * failure. */
struct store_server *store_server_start(int port, const char *run_id,
                                        const struct store_server_limits *limits, struct err *err);
int store_server_port(const struct store_server *s);
/* The number of connections that were closed without having presented the run id. Any thread may call it. */
uint32_t store_server_unauthenticated(const struct store_server *s);
/* Accepts NULL. */
void store_server_stop(struct store_server *s);

#endif
