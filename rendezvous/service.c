/* service.c - a thread that serves a listening TCP socket until it is stopped. */
#include "rendezvous/service.h"

#include "common/clock.h"
#include "common/memory.h"
#include "common/thread.h"
#include "rendezvous/net.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

enum { SHUT_MS = 100, TURNED_AWAY_MAX = 64 };

int service_open(struct service *s, int port, struct err *err)
{
    *s = (struct service){.listener = -1, .stop = -1};
    s->listener = net_listen(port, &s->port, err);
    return s->listener < 0 ? -1 : 0;
}

int service_start(struct service *s, void *(*run)(void *arg), void *arg, struct err *err)
{
    s->stop = eventfd(0, EFD_CLOEXEC);
    if (s->stop < 0)
        return err_errno(err, ERR_FATAL, errno, "eventfd");
    const int code = thread_start(&s->thread, run, arg);
    return code ? err_errno(err, ERR_FATAL, code, "cannot start its thread") : 0;
}

int service_poll(struct service *s, struct pollfd *pfds, int n, int64_t until_ms)
{
    const int64_t now = clock_mono_ms();

    pfds[0] = (struct pollfd){.fd = s->stop, .events = POLLIN};
    pfds[1] = (struct pollfd){.fd = service_listener(s), .events = POLLIN};
    if (s->shut_until_ms && s->shut_until_ms < until_ms)
        until_ms = s->shut_until_ms;
    int64_t wait = until_ms <= now ? 0 : until_ms - now;
    if (poll(pfds, (nfds_t)n + 2, wait < INT_MAX ? (int)wait : INT_MAX) < 0 && errno != EINTR) {
        if (errno != ENOMEM)
            abort(); /* the other errors mean bad arguments */
        memory_exhausted();
    }
    return pfds[0].revents != 0;
}

bool service_ready(const struct pollfd *pfds)
{
    return pfds[1].revents != 0;
}

int service_listener(struct service *s)
{
    if (s->shut_until_ms <= clock_mono_ms())
        s->shut_until_ms = 0;
    return s->shut_until_ms ? -1 : s->listener;
}

static int accept_one(struct service *s, uint8_t addr[static 16])
{
    int fd = net_accept(s->listener, addr);

    if (fd < 0 && errno != EAGAIN && errno != ECONNABORTED && errno != EINTR)
        s->shut_until_ms = clock_mono_ms() + SHUT_MS;
    return fd;
}

/* Reset the connection: the peer sees it at once, and no TIME_WAIT entry stays here. */
static void turn_away(int fd)
{
    const struct linger at_once = {.l_onoff = 1};

    setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
    close(fd);
}

/* Count the connections that may be evicted (only those from `addr` unless it is NULL). *first: which to evict first;
 * -1: none. */
static int count(const struct service_limits *c, const uint8_t *addr, int *first, struct service_conn *who)
{
    struct service_conn g;
    int n = 0;

    *first = -1;
    for (int i = 0; i < c->n; i++) {
        if (!c->get(c->arg, i, &g) || (addr && memcmp(g.addr, addr, 16) != 0))
            continue;
        if (!n++ || (g.greeted == who->greeted ? g.came_ms < who->came_ms : who->greeted)) {
            *who = g;
            *first = i;
        }
    }
    return n;
}

int service_accept(struct service *s, const struct service_limits *c, uint8_t addr[static 16], int *evicted)
{
    const int64_t now_ms = clock_mono_ms();
    struct service_conn who = {0};
    int oldest;

    if (count(c, NULL, &oldest, &who) < c->max)
        oldest = -1;
    else if (now_ms < who.came_ms + c->evict_age_ms) {
        s->shut_until_ms = who.came_ms + c->evict_age_ms;
        return -1;
    }
    for (int i = 0; i < TURNED_AWAY_MAX; i++) {
        const int fd = accept_one(s, addr);
        if (fd < 0 || !c->per_address || count(c, addr, evicted, &who) < c->per_address) {
            *evicted = oldest;
            return fd;
        }
        if (now_ms >= who.came_ms + c->evict_age_ms)
            return fd;
        turn_away(fd);
    }
    return -1;
}

void service_stop(struct service *s)
{
    const uint64_t one = 1;

    if (write(s->stop, &one, sizeof(one)) != (ssize_t)sizeof(one))
        abort(); /* an eventfd that holds 0 takes 1 */
    pthread_join(s->thread, NULL);
}

void service_close(struct service *s)
{
    close_fd(&s->listener);
    close_fd(&s->stop);
}
