/* service.c - a thread that serves a listening TCP socket until it is stopped. */
#include "rendezvous/service.h"

#include "common/clock.h"
#include "common/memory.h"
#include "common/thread.h"
#include "rendezvous/net.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum { SHUT_MS = 100 };

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

static int accept_one(struct service *s)
{
    int fd = net_accept(s->listener);

    if (fd < 0 && errno != EAGAIN && errno != ECONNABORTED && errno != EINTR)
        s->shut_until_ms = clock_mono_ms() + SHUT_MS;
    return fd;
}

int service_admit(struct service *s, const struct service_crowd *c, bool *displaced)
{
    const int64_t due_ms = c->oldest_ms + c->patience_ms;

    *displaced = c->n >= c->max;
    if (*displaced && clock_mono_ms() < due_ms) {
        s->shut_until_ms = due_ms;
        return -1;
    }
    return accept_one(s);
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
    if (s->listener >= 0)
        close(s->listener);
    if (s->stop >= 0)
        close(s->stop);
}
