/* server.h - a run's key-value store, served over TCP by worker rank 0, or by a launcher for launchers.
 *
 * Ownership: store_server_start gives a server that store_server_stop ends; its keys go with it.
 * Threads:   the server has a thread of its own, since its host is busy with its own work while others ask. That
 *            thread touches nothing but the server.
 * Errors:    ERR_CONFLICT when the port is taken, ERR_FATAL for the rest. A client's mistakes are the client's: it is
 *            told, or dropped, and the others notice nothing. One that comes when the process has no descriptor left
 *            waits at the port, unanswered, until there is one; so does one that comes while many others have just come
 *            and not presented the run id.
 * Order:     requests of one client are answered in order; a waiting one does not hold up other clients.
 */
#ifndef TK_RENDEZVOUS_SERVER_H
#define TK_RENDEZVOUS_SERVER_H

#include "common/cleanup.h"
#include "common/err.h"

#include <stddef.h>
#include <stdint.h>

struct store_server;

/* 0 in a field: the default. */
struct store_server_limits {
    int clients;      /* 4096: one more is told so */
    size_t keys;      /* 65536 */
    size_t bytes;     /* keys and values together, 64 MiB */
    int64_t speak_ms; /* 10000: from being let in to a whole hello, and for any message once begun */
};

/* Listen at `port` (0: any, see store_server_port) of every address. NULL on failure. */
struct store_server *store_server_start(int port, const char *run_id,
                                        const struct store_server_limits *limits, struct err *err);
int store_server_port(const struct store_server *s);
/* Connections that went, or were sent away, without having presented the run id. Any thread may ask. */
uint32_t store_server_unauthenticated(const struct store_server *s);
void store_server_stop(struct store_server *s);

#endif
