/* server.c - the store server: its thread's loop; clients.c handles the connections. */
#include "rendezvous/server.h"
#include "common/clock.h"
#include "common/memory.h"
#include "rendezvous/clients.h"
#include "rendezvous/net.h"
#include "rendezvous/service.h"

#include <stdlib.h>
#include <string.h>

struct store_server {
    struct service service;
    struct clients clients;
    struct pollfd *pfds; /* clients.max + 2 */
};

static void welcome(struct store_server *s)
{
    const int64_t crowded_ms = clients_crowded_ms(&s->clients);

    if (crowded_ms) {
        service_shut(&s->service, clock_mono_ms() + crowded_ms);
        return;
    }
    int fd = service_accept(&s->service);
    if (fd < 0)
        return;
    net_tune(fd, false);
    if (!clients_add(&s->clients, fd)) {
        clients_turn_away(fd);
        close(fd);
    }
}

static void *serve(void *arg)
{
    struct store_server *s = arg;

    for (;;) {
        int n = clients_poll(&s->clients, s->pfds + 2);
        if (service_poll(&s->service, s->pfds, n, clients_due_ms(&s->clients)))
            return NULL;
        clients_turn(&s->clients, s->pfds + 2, n);
        if (service_ready(s->pfds))
            welcome(s);
    }
}

static void release(struct store_server *s)
{
    clients_release(&s->clients);
    service_close(&s->service);
    free(s->pfds);
    free(s);
}

struct store_server *store_server_start(int port, const char *run_id,
                                        const struct store_server_limits *limits, struct err *err)
{
    const struct store_server_limits l = limits ? *limits : (struct store_server_limits){0};
    const int max = l.clients ? l.clients : 4096;

    if (strlen(run_id) > STORE_RUN_ID_BYTES || port < 0 || port > 65535) {
        err_set(err, ERR_INVALID, "store: expected a run id of at most %d bytes and a port 0..65535",
                STORE_RUN_ID_BYTES);
        return NULL;
    }
    struct store_server *s = memory_must(calloc(1, sizeof(*s)));
    clients_init(&s->clients, run_id, max, l.speak_ms ? l.speak_ms : 10000);
    s->clients.table.max_keys = l.keys ? l.keys : 65536;
    s->clients.table.max_bytes = l.bytes ? l.bytes : (size_t)64 << 20;
    s->pfds = memory_must(calloc((size_t)max + 2, sizeof(*s->pfds)));
    if (service_open(&s->service, port, err) < 0 || service_start(&s->service, serve, s, err) < 0) {
        err_wrap(err, "store");
        release(s);
        return NULL;
    }
    return s;
}

int store_server_port(const struct store_server *s)
{
    return s->service.port;
}

uint32_t store_server_unauthenticated(const struct store_server *s)
{
    return atomic_load(&s->clients.unauthenticated);
}

void store_server_stop(struct store_server *s)
{
    if (!s)
        return;
    service_stop(&s->service);
    release(s);
}
