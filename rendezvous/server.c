/* server.c - the store server: listening socket, thread and poll loop; clients.c handles the connections. */
#include "rendezvous/server.h"
#include "common/clock.h"
#include "common/memory.h"
#include "common/thread.h"
#include "rendezvous/clients.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>

enum { SHUT_MS = 100 };

struct store_server {
    pthread_t thread;
    int listener;
    int stop; /* an eventfd */
    int port;
    int max_clients;
    int64_t shut_until_ms; /* accept nothing until then; 0: accept */
    struct clients clients;
    struct pollfd *pfds; /* max_clients + 2 */
};

static int listen_at(int port, int *ret_port, struct err *err)
{
    const int on = 1, off = 0;
    struct sockaddr_in6 addr = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port)};
    struct sockaddr_in addr4 = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    socklen_t len = sizeof(addr);
    cleanup_close int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    const bool v6 = fd >= 0;

    if (!v6)
        fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return err_errno(err, ERR_FATAL, errno, "store: cannot create a socket");
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (v6)
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
    int rc = v6 ? bind(fd, (struct sockaddr *)&addr, sizeof(addr))
                : bind(fd, (struct sockaddr *)&addr4, sizeof(addr4));
    if (rc < 0 || listen(fd, SOMAXCONN) < 0)
        return err_errno(err, errno == EADDRINUSE ? ERR_CONFLICT : ERR_FATAL, errno,
                         "store: cannot listen at port %d", port);
    if (getsockname(fd, (struct sockaddr *)&addr, &len) < 0)
        return err_errno(err, ERR_FATAL, errno, "store: getsockname");
    *ret_port = ntohs(addr.sin6_port); /* sin_port has the same offset */
    return TAKE_FD(fd);
}

/* Keepalive detects a lost host after about 5 s. */
static void tune(int fd)
{
    const int on = 1, idle_s = 2, interval_s = 1, probes = 3;

    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof(idle_s));
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval_s, sizeof(interval_s));
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof(probes));
}

/* Whether accept failed for lack of descriptors or memory. The connection then stays in the accept queue, and
 * poll would report it in a busy loop. */
static bool out_of_room(int code)
{
    return code == EMFILE || code == ENFILE || code == ENOBUFS || code == ENOMEM;
}

static void welcome(struct store_server *s)
{
    const int64_t crowded_ms = clients_crowded_ms(&s->clients);

    if (crowded_ms) {
        s->shut_until_ms = clock_mono_ms() + crowded_ms;
        return;
    }
    int fd = accept4(s->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0) {
        s->shut_until_ms = out_of_room(errno) ? clock_mono_ms() + SHUT_MS : 0;
        return;
    }
    tune(fd);
    if (!clients_add(&s->clients, fd)) {
        clients_turn_away(fd);
        close(fd);
    }
}

/* How long poll may sleep; clears shut_until_ms when it has passed. */
static int wait_ms(struct store_server *s)
{
    const int wait = clients_wait_ms(&s->clients);
    const int64_t left = s->shut_until_ms - clock_mono_ms();

    if (left <= 0) {
        s->shut_until_ms = 0;
        return wait;
    }
    return wait >= 0 && wait < left ? wait : (int)left;
}

static void *serve(void *arg)
{
    struct store_server *s = arg;

    for (;;) {
        int n = clients_poll(&s->clients, s->pfds + 2), wait = wait_ms(s);
        s->pfds[0] = (struct pollfd){.fd = s->stop, .events = POLLIN};
        s->pfds[1] = (struct pollfd){.fd = s->shut_until_ms ? -1 : s->listener, .events = POLLIN};
        if (poll(s->pfds, (nfds_t)n + 2, wait) < 0 && errno != EINTR) {
            if (errno != ENOMEM)
                abort(); /* the other errors mean bad arguments */
            memory_exhausted();
        }
        if (s->pfds[0].revents)
            return NULL;
        clients_turn(&s->clients, s->pfds + 2, n);
        if (s->pfds[1].revents)
            welcome(s);
    }
}

/* thread_start blocks signals, so that they go to the process's own thread. */
static int start_thread(struct store_server *s, struct err *err)
{
    int code = thread_start(&s->thread, serve, s);

    return code ? err_errno(err, ERR_FATAL, code, "store: cannot start its thread") : 0;
}

static void release(struct store_server *s)
{
    clients_release(&s->clients);
    if (s->listener >= 0)
        close(s->listener);
    if (s->stop >= 0)
        close(s->stop);
    free(s->pfds);
    free(s);
}

struct store_server *store_server_start(int port, const char *run_id,
                                        const struct store_server_limits *limits, struct err *err)
{
    const struct store_server_limits l = limits ? *limits : (struct store_server_limits){0};

    if (strlen(run_id) > STORE_RUN_ID_BYTES || port < 0 || port > 65535) {
        err_set(err, ERR_INVALID, "store: expected a run id of at most %d bytes and a port 0..65535",
                STORE_RUN_ID_BYTES);
        return NULL;
    }
    struct store_server *s = memory_must(calloc(1, sizeof(*s)));
    s->max_clients = l.clients ? l.clients : 4096;
    clients_init(&s->clients, run_id, s->max_clients, l.speak_ms ? l.speak_ms : 10000);
    s->clients.table.max_keys = l.keys ? l.keys : 65536;
    s->clients.table.max_bytes = l.bytes ? l.bytes : (size_t)64 << 20;
    s->pfds = memory_must(calloc((size_t)s->max_clients + 2, sizeof(*s->pfds)));
    s->listener = listen_at(port, &s->port, err);
    s->stop = s->listener < 0 ? -1 : eventfd(0, EFD_CLOEXEC);
    if (s->listener >= 0 && s->stop < 0)
        err_errno(err, ERR_FATAL, errno, "store: eventfd");
    if (s->stop < 0 || start_thread(s, err) < 0) {
        release(s);
        return NULL;
    }
    return s;
}

int store_server_port(const struct store_server *s)
{
    return s->port;
}

uint32_t store_server_unauthenticated(const struct store_server *s)
{
    return atomic_load(&s->clients.unauthenticated);
}

void store_server_stop(struct store_server *s)
{
    const uint64_t one = 1;

    if (!s)
        return;
    if (write(s->stop, &one, sizeof(one)) != (ssize_t)sizeof(one))
        abort(); /* an eventfd that holds 0 takes 1 */
    pthread_join(s->thread, NULL);
    release(s);
}
