/* test_meet.c - two launchers in a meeting; the test controls the connection of one: it resets it, silences it, or cuts it for good. */
#include "../flood.h"
#include "../ports.h"
#include "rendezvous/meet.h"
#include "rendezvous/message.h"

#include <dirent.h>
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

enum { LONG_MS = 600000, WIRES_MAX = 64 };

static atomic_bool answers; /* the name server of "silent.host" */

/* The C library's own, but that this host is found late: the first name server of resolv.conf is dead. Another is found when the test
 * says so. */
int getaddrinfo(const char *node, const char *service, const struct addrinfo *hints, struct addrinfo **res)
{
    int (*found)(const char *, const char *, const struct addrinfo *, struct addrinfo **);
    const struct timespec late = {.tv_sec = 1, .tv_nsec = 500000000};

    *(void **)&found = dlsym(RTLD_NEXT, "getaddrinfo");
    if (node && strcmp(node, "all.pods") == 0 && !(hints->ai_flags & AI_NUMERICHOST)) {
        const int rc = found("127.0.0.1", service, hints, res);
        return rc ? rc : found("192.0.2.7", service, hints, &(*res)->ai_next);
    }
    const bool is_silent = node && strcmp(node, "silent.host") == 0;
    if (!node || (strcmp(node, "late.host") != 0 && !is_silent) || hints->ai_flags & AI_NUMERICHOST)
        return found(node, service, hints, res);
    while (is_silent && !atomic_load(&answers))
        poll(NULL, 0, 10);
    if (!is_silent)
        nanosleep(&late, NULL);
    return found("127.0.0.1", service, hints, res);
}

/* Passes bytes from its port to another. */
struct wire {
    pthread_t thread;
    int listener, port, to;
    atomic_int resets;  /* requested */
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

/* A connection from another address than the nodes', 127.0.0.`host`: one has a quota of connections that have proved nothing. */
static int stranger(int port, uint32_t host)
{
    const struct sockaddr_in from = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK - 1 + host)}},
                             to = {.sin_family = AF_INET,
                                   .sin_port = htons((uint16_t)port),
                                   .sin_addr = {htonl(INADDR_LOOPBACK)}};
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_true(fd >= 0);
    assert_int_equal(bind(fd, (const struct sockaddr *)&from, sizeof(from)), 0);
    assert_int_equal(connect(fd, (const struct sockaddr *)&to, sizeof(to)), 0);
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
        if (atomic_load(&w->cut))
            shutdown(w->listener, SHUT_RDWR); /* nobody connects any more */
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
    struct meet *host, *guest;
};

static struct meet_view view;
static struct jobkey key; /* of what is started next */
static const char *run_id = "r";

static struct meet *start(const char *host, int port, enum meet_hosts hosts, int64_t keep_alive_ms)
{
    const struct meet_config c = {.host = host,
                                  .port = port,
                                  .hosts = hosts,
                                  .node = {.run_id = run_id,
                                           .key = key,
                                           .join_ms = LONG_MS,
                                           .keep_alive_ms = keep_alive_ms,
                                           .keep_alive_attempts = 9,
                                           .nproc = 1,
                                           .wanted = -1,
                                           .port = 1,
                                           .role = "default"},
                                  .quorum = {.min = 1,
                                             .max = 2,
                                             .restarts = 0,
                                             .join_ms = LONG_MS,
                                             .last_call_ms = LONG_MS,
                                             .keep_alive_ms = keep_alive_ms,
                                             .keep_alive_attempts = 9}};
    struct err err = {0};
    struct meet *m = meet_start(&c, &err);

    if (!m)
        fail_msg("%s", err.msg);
    return m;
}

/* Until the run is in that stage and round, or the node is over. */
static void await(struct meet *m, int64_t stage, int64_t round)
{
    const int64_t limit = clock_mono_ms() + LONG_MS;

    for (;;) {
        struct pollfd pfd = {.fd = meet_fd(m), .events = POLLIN};
        meet_look(m, &view);
        if ((view.state.stage == stage && view.state.round == round) || view.stage == NODE_OVER)
            return;
        if (clock_mono_ms() > limit)
            fail_msg("stage %d of round %d did not come", (int)stage, (int)round);
        poll(&pfd, 1, 1000);
    }
}

static void begin_ranks(struct meet *m)
{
    int rank;

    await(m, STAGE_RUNNING, 0);
    assert_true(meet_begins(m, &rank, &view));
    assert_false(meet_begins(m, &rank, &view));
}

static void begin_at(struct pair *p, const char *host, int64_t keep_alive_ms)
{
    p->wire.to = ports_take();
    p->wire.listener = local(0, true, &p->wire.port);
    assert_int_equal(pthread_create(&p->wire.thread, NULL, run_wire, &p->wire), 0);
    p->host = start("127.0.0.1", p->wire.to, MEET_HOSTS, keep_alive_ms);
    p->guest = start(host, p->wire.port, MEET_HOSTS_NOT, keep_alive_ms);
    begin_ranks(p->host);
    begin_ranks(p->guest);
}

/* Heartbeats that nobody lives to miss. */
static void begin(struct pair *p)
{
    begin_at(p, "127.0.0.1", LONG_MS);
}

static void finish(struct pair *p)
{
    meet_end(p->guest, 100);
    meet_end(p->host, 100);
    atomic_store(&p->wire.stop, true);
    pthread_join(p->wire.thread, NULL);
}

static void rest(int64_t ms)
{
    const struct timespec pause = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};

    nanosleep(&pause, NULL);
}

/* Whether the leader has given the guest up: it was so late, since a thread did not run, that its connection had ended for longer
 * than a cut node is given. For another reason the test fails. */
static bool is_given_up(struct pair *p)
{
    meet_look(p->host, &view);
    if (view.state.stage == STAGE_RUNNING && view.state.round == 0)
        return false;
    if (!strstr(view.state.why, "its launcher's connection ended"))
        fail_msg("%s", view.state.why);
    return true;
}

/* Resets all connections, again and again: the nodes connect again and none is lost. False: the guest was late. */
static bool reset_twice(struct pair *p, int64_t pause_ms)
{
    const int before = atomic_load(&p->wire.made);
    for (int i = 0; i < 2; i++) {
        atomic_fetch_add(&p->wire.resets, 1);
        rest(pause_ms);
    }
    const int64_t limit = clock_mono_ms() + LONG_MS;
    while (atomic_load(&p->wire.made) == before && !is_given_up(p) && clock_mono_ms() < limit)
        rest(10);
    const bool late = is_given_up(p);
    if (!late) {
        assert_true(atomic_load(&p->wire.made) > before);
        meet_look(p->guest, &view);
        assert_int_equal(view.stage, NODE_RUNS);
        assert_false(view.must_stop);
        meet_ranks_ended(p->guest, true);
        meet_ranks_ended(p->host, true);
        await(p->guest, STAGE_ENDED, 0);
    }
    const bool well = !late && view.state.end == END_SUCCESS;
    if (!late && !well)
        assert_true(is_given_up(p)); /* meanwhile */
    finish(p);
    return well;
}

enum { TRIES = 10 };

static void try_often(bool (*once)(void))
{
    for (int i = 0; !once(); i++) {
        if (i == TRIES)
            fail_msg("the guest was given up %d times", i + 1);
        print_message("the guest was late: once more\n");
    }
}

static struct pair pair;

static bool reset_once(void)
{
    pair = (struct pair){.wire = {.listener = -1}};
    begin(&pair);
    return reset_twice(&pair, 700); /* longer than what a cut node is given */
}

static void test_reset(void **state)
{
    (void)state;
    try_often(reset_once);
}

/* Where the leader is has been known once: that a name server is slow now is no reason to give up. */
static bool reset_with_a_late_name_server(void)
{
    pair = (struct pair){.wire = {.listener = -1}};
    begin_at(&pair, "late.host", LONG_MS);
    return reset_twice(&pair, 2000);
}

static void test_reset_with_a_late_name_server(void **state)
{
    (void)state;
    try_often(reset_with_a_late_name_server);
}

/* The network is gone for a few seconds, in which the guest gives its connection up. That the leader hears of this before
 * it hears the guest again must not make it believe that the guest is dead. */
static bool silence(void)
{
    pair = (struct pair){.wire = {.listener = -1}};
    begin_at(&pair, "127.0.0.1", 1000);
    atomic_store(&pair.wire.silent, true);
    rest(3000); /* a heartbeat has no answer for 0.4 s, and another connection none for a second */
    atomic_store(&pair.wire.shut, true);
    atomic_store(&pair.wire.silent, false);
    rest(1500); /* longer than what a cut node is given */
    atomic_store(&pair.wire.shut, false);
    return reset_twice(&pair, 700);
}

static void test_silence(void **state)
{
    (void)state;
    try_often(silence);
}

/* The wire is cut for good: each side knows without any heartbeat. */
static void test_cut(void **state)
{
    (void)state;
    pair = (struct pair){.wire = {.listener = -1}};
    begin(&pair);
    atomic_store(&pair.wire.cut, true);
    for (meet_look(pair.guest, &view); !view.must_stop; meet_look(pair.guest, &view))
        rest(1);
    meet_ranks_ended(pair.guest, false);
    await(pair.guest, STAGE_ENDED, 0);
    assert_int_equal(view.err.kind, ERR_PEER);
    await(pair.host, STAGE_FORMING, 1);
    assert_non_null(strstr(view.state.why, "its launcher's connection ended"));
    finish(&pair);
}

static bool leads(struct meet *m)
{
    struct steps ignored;

    return meet_steps(m, &ignored);
}

/* A name of several machines is nobody's own: else each of them would host. */
static void test_a_name_of_several(void **state)
{
    const int port = ports_take();

    (void)state;
    struct meet *m = start("all.pods", port, MEET_HOSTS_AUTO, LONG_MS);
    rest(300);
    assert_false(leads(m));
    meet_end(m, 0);
    m = start("127.0.0.1", port, MEET_HOSTS_AUTO, LONG_MS);
    await(m, STAGE_FORMING, 0);
    assert_true(leads(m));
    meet_end(m, 0);
}

static void set_key(const char *text)
{
    key = (struct jobkey){.has = text[0] != '\0'};
    memcpy(key.bytes, text, strlen(text));
}

/* Both have the key; then others come that have another one, or none. */
static void test_a_key(void **state)
{
    const int port = ports_take();

    (void)state;
    set_key("a key");
    struct meet *host = start("127.0.0.1", port, MEET_HOSTS, LONG_MS),
                *guest = start("127.0.0.1", port, MEET_HOSTS_NOT, LONG_MS);
    begin_ranks(host);
    begin_ranks(guest);
    set_key("b key");
    struct meet *other = start("127.0.0.1", port, MEET_HOSTS_NOT, LONG_MS);
    for (meet_look(other, &view); !strstr(view.err.msg, "does not have the key"); meet_look(other, &view))
        rest(10);
    meet_end(other, 0);
    set_key("");
    struct meet *keyless = start("127.0.0.1", port, MEET_HOSTS_NOT, LONG_MS);
    await(keyless, STAGE_ENDED, 0);
    assert_int_equal(view.err.kind, ERR_INVALID);
    assert_non_null(strstr(view.err.msg, "TORCHKEEPER_JOB_KEY"));
    meet_end(keyless, 0);
    meet_look(guest, &view);
    assert_int_equal(view.stage, NODE_RUNS);
    assert_false(view.must_stop);
    meet_end(guest, 100);
    meet_end(host, 100);
}

static void test_a_flood(void **state)
{
    const int port = ports_take();

    (void)state;
    struct meet *host = start("127.0.0.1", port, MEET_HOSTS, LONG_MS);
    await(host, STAGE_FORMING, 0);
    struct flood f = flood_begin(&port, 1);
    const int64_t begin_ms = clock_mono_ms();
    struct meet *guest = start("127.0.0.1", port, MEET_HOSTS_NOT, LONG_MS);
    begin_ranks(guest);
    flood_end(&f, "the second node joined", 1, begin_ms);
    meet_end(guest, 100);
    meet_end(host, 100);
}

static int count_fds(void)
{
    DIR *d = opendir("/proc/self/fd");
    int n = 0;

    assert_non_null(d);
    while (readdir(d))
        n++;
    closedir(d);
    return n;
}

static void put(int fd, const struct message *m)
{
    cleanup_buf struct buf b = BUF_INIT(MESSAGE_NODE_BYTES);
    struct err err = {0};

    assert_int_equal(message_put(m, &b, &err), 0);
    assert_int_equal(send(fd, b.data, b.len, MSG_NOSIGNAL), b.len);
}

static void get(int fd, enum message_type type)
{
    char frame[MESSAGE_FIRST_BYTES];

    assert_int_equal(recv(fd, frame, 4, MSG_WAITALL), 4);
    const size_t len = (uint8_t)frame[0];
    assert_int_equal(recv(fd, frame, len, MSG_WAITALL), len);
    assert_int_equal(frame[0], type);
}

/* The connection of a node that has joined the run, and speaks by hand. */
static int join_by_hand(int port)
{
    const struct message hello = {
        .type = MESSAGE_HELLO,
        .hello = {.version = MESSAGE_VERSION, .number = 1, .id = "by hand", .run_id = "r"}};
    const struct message answer = {.type = MESSAGE_ANSWER};
    const struct message node = {.type = MESSAGE_NODE,
                                 .node = {.phase = NODE_JOINING,
                                          .beat = 1,
                                          .nproc = 1,
                                          .wanted = -1,
                                          .port = 1,
                                          .addr = "127.0.0.1",
                                          .role = "default",
                                          .cause = {.rank = -1, .local_rank = -1}}};
    const int fd = local(port, false, NULL);

    put(fd, &hello);
    get(fd, MESSAGE_CHALLENGE);
    put(fd, &answer);
    get(fd, MESSAGE_WELCOME);
    put(fd, &node);
    return fd;
}

/* Connections that send nothing, or what no launcher sends, and a node whose frame is bad: it is lost at once, and the others meet. */
static void test_strangers_and_bad_frames(void **state)
{
    enum { CROWD = 300 };
    static const char bad_hello[] = {2, 0, 0, 0, MESSAGE_HELLO, 'x'},
                      bad_node[] = {2, 0, 0, 0, MESSAGE_NODE, 'x'};
    static const char garbage[] = "GET / HTTP/1.0\r\n\r\n";
    const int port = ports_take();
    int crowd[CROWD + 2];
    char byte;

    (void)state;
    struct meet *host = start("127.0.0.1", port, MEET_HOSTS_AUTO, LONG_MS);
    await(host, STAGE_FORMING, 0);
    const int before = count_fds();
    for (int i = 0; i < CROWD + 2; i++)
        crowd[i] = stranger(port, i < CROWD ? 2 : 3);
    assert_true(send(crowd[CROWD], garbage, sizeof(garbage) - 1, MSG_NOSIGNAL) > 0);
    assert_true(send(crowd[CROWD + 1], bad_hello, sizeof(bad_hello), MSG_NOSIGNAL) > 0);
    assert_true(recv(crowd[CROWD], &byte, 1, 0) <= 0);
    assert_true(recv(crowd[CROWD + 1], &byte, 1, 0) <= 0);
    const int node = join_by_hand(port);
    begin_ranks(host);
    assert_int_equal(view.state.n, 2);
    assert_int_equal(send(node, bad_node, sizeof(bad_node), MSG_NOSIGNAL), sizeof(bad_node));
    await(host, STAGE_FORMING, 1); /* no heartbeat was missed */
    assert_non_null(strstr(view.state.why, "its launcher's connection ended"));
    struct meet *guest = start("127.0.0.1", port, MEET_HOSTS_NOT, LONG_MS);
    await(guest, STAGE_FORMING, 1);
    meet_end(guest, 0);
    close(node);
    for (int i = 0; i < CROWD + 2; i++)
        close(crowd[i]);
    const int64_t limit = clock_mono_ms() + LONG_MS;
    while (count_fds() != before && clock_mono_ms() < limit)
        rest(10);
    assert_int_equal(count_fds(), before);
    meet_end(host, 0);
}

/* Why a node has not reached its leader yet, in the words of the first try and of those behind it. */
static const char *await_why(struct meet *m)
{
    const int64_t limit = clock_mono_ms() + LONG_MS;

    do {
        rest(10);
        meet_look(m, &view);
    } while (!view.err.kind && clock_mono_ms() < limit);
    rest(300);
    meet_look(m, &view);
    return view.err.msg;
}

/* A name server that does not answer is no firewall. */
static void test_a_name_server_that_is_silent(void **state)
{
    const int port = ports_take();

    (void)state;
    atomic_store(&answers, false);
    struct meet *m = start("silent.host", port, MEET_HOSTS_NOT, LONG_MS);
    const char *why = await_why(m);
    if (!strstr(why, "name server") || strstr(why, "its address"))
        fail_msg("%s", why);
    assert_int_equal(view.err.code, EAI_NONAME);
    atomic_store(&answers, true);
    meet_end(m, 0);
}

/* A server that refused is a launcher: no probe follows. */
static void test_another_run(void **state)
{
    const int port = ports_take();

    (void)state;
    struct meet *host = start("127.0.0.1", port, MEET_HOSTS_AUTO, LONG_MS);
    await(host, STAGE_FORMING, 0);
    run_id = "other";
    struct meet *other = start("127.0.0.1", port, MEET_HOSTS_NOT, LONG_MS);
    run_id = "r";
    assert_string_equal(await_why(other), "another run is there");
    meet_end(other, 0);
    meet_end(host, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_name_of_several),
        cmocka_unit_test(test_a_key),
        cmocka_unit_test(test_another_run),
        cmocka_unit_test(test_a_name_server_that_is_silent),
        cmocka_unit_test(test_strangers_and_bad_frames),
        cmocka_unit_test(test_reset),
        cmocka_unit_test(test_reset_with_a_late_name_server),
        cmocka_unit_test(test_silence),
        cmocka_unit_test(test_cut),
        cmocka_unit_test(test_a_flood),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
