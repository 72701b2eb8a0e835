/* host_alarm.c - a thread that ends this host's waits at once when a peer exits: it sleeps until a peer's socket closes,
 * then wakes all ranks that sleep in a phase (host_phase.c).
 *
 * A sleeping rank waits for a word in shared memory and cannot wait for sockets at the same time.
 */
#include "collectives/host.h"
#include "common/memory.h"
#include "common/thread.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* pfds[r] is rank r's socket, the last one stops the thread. If poll fails, the thread ends: waiting ranks
 * still check their peers every HOST_SLICE_MS. */
static void *watch(void *arg)
{
    struct host *h = arg;
    struct pollfd *pfds = h->alarm.pfds;

    for (;;) {
        if (poll(pfds, (nfds_t)h->world + 1, -1) < 0) {
            if (errno != EINTR)
                return NULL;
            continue;
        }
        if (pfds[h->world].revents)
            return NULL;
        for (int r = 0; r < h->world; r++)
            if (pfds[r].revents) {
                host_raise_lost(h, (uint32_t)r + 1);
                pfds[r].fd = -1;
            }
    }
}

void host_alarm_start(struct host *h)
{
    struct host_alarm *a = &h->alarm;

    a->pfds = memory_must(calloc((size_t)h->world + 1, sizeof(*a->pfds)));
    for (int r = 0; r < h->world; r++)
        a->pfds[r] = (struct pollfd){.fd = h->links[r], .events = POLLRDHUP};
    a->stop = eventfd(0, EFD_CLOEXEC);
    a->pfds[h->world] = (struct pollfd){.fd = a->stop, .events = POLLIN};
    a->runs = a->stop >= 0 && thread_start(&a->thread, watch, h) == 0;
}

void host_alarm_stop(struct host *h)
{
    struct host_alarm *a = &h->alarm;
    const uint64_t one = 1;

    if (a->runs && write(a->stop, &one, sizeof(one)) != (ssize_t)sizeof(one))
        abort(); /* an eventfd that holds 0 takes 1 */
    if (a->runs)
        pthread_join(a->thread, NULL);
    if (a->pfds && a->stop >= 0)
        close(a->stop);
    free(a->pfds);
    *a = (struct host_alarm){0};
}
