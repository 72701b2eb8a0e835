/* flood.h - a process at 127.0.0.2 that connects to some ports as fast as it can, sends nothing, and keeps the connections. */
#ifndef TESTS_FLOOD_H
#define TESTS_FLOOD_H

#include "common/clock.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

enum { FLOOD_BEGUN = 3000, FLOOD_KEPT = 20000, FLOOD_SERVED_MS = 300000 };

struct flood {
    pid_t pid;
    atomic_int *made; /* connections so far; shared with it */
    int64_t from_ms;
};

static void flood_pour(const struct flood *f, const int *ports, int n)
{
    const struct sockaddr_in from = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK + 1)}};
    const struct linger at_once = {.l_onoff = 1}; /* no port stays taken by it */
    static int fds[FLOOD_KEPT];
    struct rlimit most;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)!getrlimit(RLIMIT_NOFILE, &most);
    most.rlim_cur = most.rlim_max;
    (void)!setrlimit(RLIMIT_NOFILE, &most);
    const int room = most.rlim_cur > 2 * FLOOD_KEPT ? FLOOD_KEPT : (int)most.rlim_cur / 2;
    for (int i = 0;; i = (i + 1) % room) {
        const struct sockaddr_in to = {.sin_family = AF_INET,
                                       .sin_port = htons((uint16_t)ports[i % n]),
                                       .sin_addr = {htonl(INADDR_LOOPBACK)}};
        char byte;
        if (i == 0)
            (void)poll(NULL, 0, 1);
        if (fds[i] > 0 && recv(fds[i], &byte, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN)
            continue; /* it is kept */
        if (fds[i] > 0)
            close(fds[i]);
        fds[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        setsockopt(fds[i], SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
        if (fds[i] >= 0 && bind(fds[i], (const struct sockaddr *)&from, sizeof(from)) == 0)
            (void)connect(fds[i], (const struct sockaddr *)&to, sizeof(to));
        atomic_fetch_add(f->made, 1);
    }
}

/* Returns when it is under way. */
static inline struct flood flood_begin(const int *ports, int n)
{
    struct flood f = {
        .made = mmap(NULL, sizeof(*f.made), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0),
        .from_ms = clock_mono_ms()};

    assert_true(f.made != MAP_FAILED);
    f.pid = fork();
    if (f.pid == 0)
        flood_pour(&f, ports, n);
    assert_true(f.pid > 0);
    while (atomic_load(f.made) < FLOOD_BEGUN)
        nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    return f;
}

/* Print what was served how long after the begin of n requests beside it: a fraction of a second each, and on a starved machine,
 * where the flood needs the cores too, FLOOD_SERVED_MS at most. */
static inline void flood_end(struct flood *f, const char *what, int n, int64_t begin_ms)
{
    const int64_t now_ms = clock_mono_ms(), took_ms = now_ms - f->from_ms;

    kill(f->pid, SIGKILL);
    assert_int_equal(waitpid(f->pid, NULL, 0), f->pid);
    printf("%s within %d ms, beside a flood of %d connections a second from one address\n", what,
           (int)(now_ms - begin_ms), (int)((int64_t)atomic_load(f->made) * 1000 / (took_ms ? took_ms : 1)));
    munmap(f->made, sizeof(*f->made));
    assert_true(now_ms - begin_ms < n * FLOOD_SERVED_MS);
}

#endif
