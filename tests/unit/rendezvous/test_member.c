/* test_member.c - two members, one of them behind a wire that the test holds: reset, silent, and cut for good. */
#include "common/clock.h"
#include "rendezvous/member.h"
#include "rendezvous/store.h"

#include <dlfcn.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include <cmocka.h>

enum { LONG_MS = 60000, WIRES_MAX = 64 };

/* The C library's own, but that this host is found late: the first name server of resolv.conf is dead. */
int getaddrinfo(const char *node, const char *service, const struct addrinfo *hints, struct addrinfo **res)
{
    int (*found)(const char *, const char *, const struct addrinfo *, struct addrinfo **);
    const struct timespec late = {.tv_sec = 1, .tv_nsec = 500000000};

    *(void **)&found = dlsym(RTLD_NEXT, "getaddrinfo");
    if (!node || strcmp(node, "late.host") != 0 || hints->ai_flags & AI_NUMERICHOST)
        return found(node, service, hints, res);
    nanosleep(&late, NULL);
    return found("127.0.0.1", service, hints, res);
}

/* Passes bytes from its port to another. */
struct wire {
    pthread_t thread;
    int listener, port, to;
    atomic_int resets;  /* asked for */
    atomic_int made;    /* connections so far */
    atomic_bool silent; /* carries nothing, and keeps what it was given */
    atomic_bool shut;   /* takes no new connection */
    atomic_bool cut, stop;
};

static int local(int port, bool listens, int *ret_port)
{
    struct sockaddr_in addr = {
        .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t len = sizeof(addr);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_true(fd >= 0);
    int rc = listens ? bind(fd, (struct sockaddr *)&addr, len) : connect(fd, (struct sockaddr *)&addr, len);
    if (rc < 0 || (listens && listen(fd, 16) < 0) || getsockname(fd, (struct sockaddr *)&addr, &len) < 0) {
        close(fd);
        return -1;
    }
    if (ret_port)
        *ret_port = ntohs(addr.sin_port);
    return fd;
}

/* Both ends learn of it at once. */
static void reset(int fd)
{
    const struct linger now = {.l_onoff = 1};

    setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
    close(fd);
}

static bool pass(int from, int to)
{
    char bytes[4096];
    ssize_t n = recv(from, bytes, sizeof(bytes), MSG_DONTWAIT);

    return n < 0 || (n > 0 && send(to, bytes, (size_t)n, MSG_NOSIGNAL) == n);
}

static void *run_wire(void *arg)
{
    struct wire *w = arg;
    struct pollfd fds[1 + 2 * WIRES_MAX]; /* pairs, after the listener */
    int n = 1, resets = 0;

    while (!atomic_load(&w->stop)) {
        const bool open = !atomic_load(&w->cut) && !atomic_load(&w->shut);
        fds[0] = (struct pollfd){.fd = open ? w->listener : -1, .events = POLLIN};
        const bool silent = atomic_load(&w->silent);
        poll(fds, silent ? 0 : (nfds_t)n, 5);
        if (silent)
            continue;
        const bool all = atomic_load(&w->cut) || resets != atomic_load(&w->resets);
        resets = atomic_load(&w->resets);
        for (int i = 1; i < n; i += 2) {
            if (!all && pass(fds[i].fd, fds[i + 1].fd) && pass(fds[i + 1].fd, fds[i].fd))
                continue;
            reset(fds[i].fd);
            reset(fds[i + 1].fd);
            fds[i] = fds[n - 2];
            fds[i + 1] = fds[n - 1];
            n -= 2;
            i -= 2;
        }
        if (!(fds[0].revents & POLLIN) || n + 2 > 1 + 2 * WIRES_MAX)
            continue;
        int a = accept4(w->listener, NULL, NULL, SOCK_CLOEXEC), b = a < 0 ? -1 : local(w->to, false, NULL);
        if (b < 0) {
            if (a >= 0)
                close(a);
            continue;
        }
        fds[n++] = (struct pollfd){.fd = a, .events = POLLIN};
        fds[n++] = (struct pollfd){.fd = b, .events = POLLIN};
        atomic_fetch_add(&w->made, 1);
    }
    for (int i = 1; i < n; i++)
        close(fds[i].fd);
    close(w->listener);
    return NULL;
}

struct pair {
    struct wire wire;
    struct member *host, *guest;
};

/* Heartbeats that nobody lives to miss. */
static struct member *start(const char *host, int port, enum member_hosts hosts)
{
    const struct member_config c = {.host = host,
                                    .port = port,
                                    .run_id = "r",
                                    .hosts = hosts,
                                    .quorum = {.min = 1,
                                               .max = 2,
                                               .restarts = 0,
                                               .join_ms = LONG_MS,
                                               .last_call_ms = LONG_MS,
                                               .keep_alive_ms = LONG_MS,
                                               .keep_alive_attempts = 9}};
    struct err err = {0};
    struct member *m = member_start(&c, &err);

    if (!m)
        fail_msg("%s", err.msg);
    return m;
}

static void say(struct member *m, enum node_phase phase, int64_t round)
{
    const struct meeting_node node = {
        .phase = phase, .round = round, .nproc = 1, .wanted = -1, .port = 1, .cause = {.rank = -1}};

    member_say(m, &node);
}

static struct member_view view;

/* Until the run is in that stage and round, or the member has lost it. */
static void await(struct member *m, int64_t stage, int64_t round)
{
    const int64_t limit = clock_mono_ms() + LONG_MS;

    for (;;) {
        struct pollfd pfd = {.fd = member_fd(m), .events = POLLIN};
        member_look(m, &view);
        if ((view.state.stage == stage && view.state.round == round) || view.link == MEMBER_LOST)
            return;
        if (clock_mono_ms() > limit)
            fail_msg("stage %d of round %d did not come", (int)stage, (int)round);
        poll(&pfd, 1, 1000);
    }
}

static void begin_at(struct pair *p, const char *host)
{
    int probe = local(0, true, &p->wire.to);

    close(probe);
    p->wire.listener = local(0, true, &p->wire.port);
    assert_int_equal(pthread_create(&p->wire.thread, NULL, run_wire, &p->wire), 0);
    p->host = start("127.0.0.1", p->wire.to, MEMBER_HOSTS);
    p->guest = start(host, p->wire.port, MEMBER_HOSTS_NOT);
    say(p->host, NODE_JOINING, 0);
    say(p->guest, NODE_JOINING, 0);
    await(p->host, STAGE_RUNNING, 0);
    await(p->guest, STAGE_RUNNING, 0);
    say(p->host, NODE_RUNNING, 0);
    say(p->guest, NODE_RUNNING, 0);
}

static void begin(struct pair *p)
{
    begin_at(p, "127.0.0.1");
}

static void finish(struct pair *p)
{
    member_end(p->guest, 100);
    member_end(p->host, 100);
    atomic_store(&p->wire.stop, true);
    pthread_join(p->wire.thread, NULL);
}

static void rest(int64_t ms)
{
    const struct timespec pause = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};

    nanosleep(&pause, NULL);
}

/* Resets all connections, again and again: they are made anew and nobody is lost. */
static void reset_twice(struct pair *p, int64_t pause_ms)
{
    const int before = atomic_load(&p->wire.made);
    for (int i = 0; i < 2; i++) {
        atomic_fetch_add(&p->wire.resets, 1);
        rest(pause_ms);
    }
    assert_true(atomic_load(&p->wire.made) > before);
    member_look(p->guest, &view);
    assert_int_equal(view.link, MEMBER_IN);
    assert_int_equal(view.state.stage, STAGE_RUNNING);
    say(p->guest, NODE_DONE, 0);
    say(p->host, NODE_DONE, 0);
    await(p->guest, STAGE_ENDED, 0);
    assert_int_equal(view.state.end, END_SUCCESS);
    finish(p);
}

static void test_reset(void **state)
{
    static struct pair p;

    (void)state;
    p = (struct pair){.wire = {.listener = -1}};
    begin(&p);
    reset_twice(&p, 700); /* longer than what a cut node is given */
}

/* Where the store is has been known once: that a name server is slow now is no reason to give up. */
static void test_reset_with_a_late_name_server(void **state)
{
    static struct pair p;

    (void)state;
    p = (struct pair){.wire = {.listener = -1}};
    begin_at(&p, "late.host");
    reset_twice(&p, 2000);
}

/* The network is gone for a few seconds, in which the guest gives its connection up. That the store hears of this before
 * it hears the guest again must not make it believe that the guest is dead. */
static void test_silence(void **state)
{
    static struct pair p;

    (void)state;
    p = (struct pair){.wire = {.listener = -1}};
    begin(&p);
    atomic_store(&p.wire.silent, true);
    rest(3000); /* it asks for one second, and waits for the answer for one more */
    atomic_store(&p.wire.shut, true);
    atomic_store(&p.wire.silent, false);
    rest(1500); /* longer than what a cut node is given */
    atomic_store(&p.wire.shut, false);
    reset_twice(&p, 700);
}

/* The leader needs longer to hear all nodes than a cut one is given: what it has not heard yet is no silence. */
static void test_reset_under_a_slow_leader(void **state)
{
    static struct pair p;
    struct err err = {0};
    int64_t tickets;

    (void)state;
    p = (struct pair){.wire = {.listener = -1}};
    begin(&p);
    struct store *s = store_connect("127.0.0.1", p.wire.to, "r", LONG_MS, &err);
    assert_non_null(s);
    /* Each of them is waited for a little. */
    assert_int_equal(store_add(s, "tickets", 900, &tickets, LONG_MS, &err), 0);
    store_close(s);
    reset_twice(&p, 3000);
}

/* The wire is cut for good: each side knows without any heartbeat. */
static void test_cut(void **state)
{
    static struct pair p;

    (void)state;
    p = (struct pair){.wire = {.listener = -1}};
    begin(&p);
    atomic_store(&p.wire.cut, true);
    await(p.guest, STAGE_ENDED, 0);
    assert_int_equal(view.link, MEMBER_LOST);
    assert_int_equal(view.err.kind, ERR_PEER);
    await(p.host, STAGE_FORMING, 1);
    assert_non_null(strstr(view.state.why, "its launcher's connection ended"));
    finish(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reset),
        cmocka_unit_test(test_reset_under_a_slow_leader),
        cmocka_unit_test(test_reset_with_a_late_name_server),
        cmocka_unit_test(test_silence),
        cmocka_unit_test(test_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
