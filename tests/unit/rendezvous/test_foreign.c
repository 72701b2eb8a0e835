/* test_foreign.c - a server that is no leader of ours is named as what it is. */
#include "common/cleanup.h"
#include "common/clock.h"
#include "rendezvous/foreign.h"
#include "rendezvous/meet.h"

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

enum { LONG_MS = 600000, SHORT_MS = 50 };

/* Answers the first bytes of each connection. */
struct server {
    pthread_t thread;
    int listener, port;
    /* What to answer to `n` bytes; "": nothing. `banner`: answer at once. */
    const char *(*answer)(const char *bytes, size_t n, size_t *len);
    bool banner;
    atomic_bool stop;
};

static const char *nothing(const char *bytes, size_t n, size_t *len)
{
    (void)bytes, (void)n;
    *len = 0;
    return "";
}

/* As PyTorch's TCPStore: it checks a magic number of its clients, then sends back what a ping holds. */
static const char *tcpstore(const char *bytes, size_t n, size_t *len)
{
    static char nonce[4];
    const uint32_t magic = 0x3C85F7CE;
    const bool valid = n == 10 && bytes[0] == 0 && memcmp(bytes + 1, &magic, 4) == 0 && bytes[5] == 13;

    *len = valid ? 4 : 0;
    memcpy(nonce, valid ? bytes + 6 : "none", 4);
    return nonce;
}

/* It waits for the end of a line. */
static const char *http(const char *bytes, size_t n, size_t *len)
{
    static const char answer[] = "HTTP/1.0 200 OK\r\n\r\n";

    *len = memmem(bytes, n, "\r\n\r\n", 4) ? strlen(answer) : 0;
    return answer;
}

static const char *ssh(const char *bytes, size_t n, size_t *len)
{
    static const char answer[] = "SSH-2.0-\x1b[31mX\xff 9.0 and a good deal more than is quoted\r\n";

    (void)bytes, (void)n;
    *len = strlen(answer);
    return answer;
}

/* It answers in the length of a frame that no leader sends. */
static const char *garbage(const char *bytes, size_t n, size_t *len)
{
    (void)bytes, (void)n;
    *len = 8;
    return "\xff\xff\xff\xff\xff\xff\xff\xff";
}

static void serve_one(const struct server *s, int fd)
{
    char bytes[1000] = "";
    size_t len = 0;
    ssize_t n = s->banner ? 0 : recv(fd, bytes, sizeof(bytes), 0);
    const char *answer = s->answer(bytes, n > 0 ? (size_t)n : 0, &len);

    if (len)
        send(fd, answer, len, MSG_NOSIGNAL);
    else if (s->answer == tcpstore)
        return; /* it ends a connection that does not begin so */
    while (n >= 0 && !atomic_load(&s->stop) && (n = recv(fd, bytes, sizeof(bytes), 0)) > 0)
        ;
}

static void *serve(void *arg)
{
    struct server *s = arg;

    while (!atomic_load(&s->stop)) {
        cleanup_close int fd = accept4(s->listener, NULL, NULL, SOCK_CLOEXEC);
        if (fd >= 0)
            serve_one(s, fd);
    }
    return NULL;
}

static void start(struct server *s, const char *(*answer)(const char *, size_t, size_t *), bool banner)
{
    struct sockaddr_in addr = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t len = sizeof(addr);

    *s = (struct server){
        .listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), .answer = answer, .banner = banner};
    assert_true(s->listener >= 0 && bind(s->listener, (struct sockaddr *)&addr, len) == 0 &&
                listen(s->listener, 16) == 0 &&
                getsockname(s->listener, (struct sockaddr *)&addr, &len) == 0);
    s->port = ntohs(addr.sin_port);
    assert_int_equal(pthread_create(&s->thread, NULL, serve, s), 0);
}

static void stop(struct server *s)
{
    atomic_store(&s->stop, true);
    shutdown(s->listener, SHUT_RDWR);
    pthread_join(s->thread, NULL);
    close(s->listener);
}

static void test_names(void **state)
{
    static const struct {
        const char *(*answer)(const char *, size_t, size_t *);
        bool banner;
        int64_t answer_ms;
        const char *want;
    } cases[] = {
        {tcpstore, false, LONG_MS,
         "a TCPStore of PyTorch answers there; its launchers and this one cannot share a run"},
        {http, false, 100, "an HTTP server answers there"},
        {ssh, true, LONG_MS, "a server answers there with \"SSH-2.0-.[31mX. 9.0 and a good deal more\""},
        {garbage, false, LONG_MS, "a server answers there with \"........\""},
        {nothing, false, SHORT_MS, "something accepts connections there and says nothing"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char got[FOREIGN_BYTES];
        struct server s;
        start(&s, cases[i].answer, cases[i].banner);
        cleanup_resolver struct resolver *at = resolver_new("127.0.0.1", s.port);
        const enum foreign want = cases[i].answer == nothing ? FOREIGN_SILENT : FOREIGN_OTHER;
        const int64_t limit_ms = clock_mono_ms() + LONG_MS;
        enum foreign who; /* on a loaded machine less than it is */
        while ((who = foreign_identify(at, cases[i].answer_ms, got)) < want && clock_mono_ms() < limit_ms)
            ;
        assert_int_equal(who, want);
        assert_string_equal(got, cases[i].want);
        stop(&s);
        assert_int_equal(foreign_identify(at, SHORT_MS, got), FOREIGN_NOBODY);
        assert_string_equal(got, "");
    }
}

static struct meet_config config(int port, enum meet_hosts hosts)
{
    return (struct meet_config){
        .host = "127.0.0.1",
        .port = port,
        .hosts = hosts,
        .node = {.run_id = "r",
                 .join_ms = LONG_MS,
                 .keep_alive_ms = 5000,
                 .keep_alive_attempts = 3,
                 .nproc = 1,
                 .wanted = -1,
                 .role = ""},
        .quorum = {.min = 2, .max = 2, .join_ms = LONG_MS, .keep_alive_ms = 5000, .keep_alive_attempts = 3}};
}

/* A node that waits for its leader reports that, and continues to wait. */
static void test_a_node_names_it(void **state)
{
    static struct meet_view view;
    struct server s;
    struct err err = {0};

    (void)state;
    start(&s, tcpstore, false);
    const struct meet_config c = config(s.port, MEET_HOSTS_NOT);
    struct meet *m = meet_start(&c, &err);
    assert_non_null(m);
    const int64_t limit_ms = clock_mono_ms() + LONG_MS;
    do {
        poll(NULL, 0, 2);
        meet_look(m, &view);
    } while (!strstr(view.err.msg, "TCPStore of PyTorch") && clock_mono_ms() < limit_ms);
    assert_string_equal(view.err.msg,
                        "no launcher of this project: a TCPStore of PyTorch answers there; its launchers "
                        "and this one cannot share a run");
    assert_int_equal(view.stage, NODE_REACHES);
    meet_end(m, 0);
    stop(&s);
}

/* A leader of ours that stands still is silent too: it is not reported as foreign, and the error stays. */
static void test_a_node_of_a_silent_one(void **state)
{
    static struct meet_view view;
    struct server s;
    struct err err = {0};

    (void)state;
    start(&s, nothing, false);
    const struct meet_config c = config(s.port, MEET_HOSTS_NOT);
    struct meet *m = meet_start(&c, &err);
    assert_non_null(m);
    const int64_t limit_ms = clock_mono_ms() + LONG_MS;
    do {
        poll(NULL, 0, 2);
        meet_look(m, &view);
    } while (!strstr(view.err.msg, "says nothing") && clock_mono_ms() < limit_ms);
    if (!strstr(view.err.msg,
                "nothing answers there (something accepts connections there and says nothing)") ||
        strstr(view.err.msg, "no launcher"))
        fail_msg("%s", view.err.msg);
    meet_end(m, 0);
    stop(&s);
}

/* A launcher that has to listen there reports who listens already. */
static void test_a_port_that_is_taken(void **state)
{
    static struct meet_view view;
    struct server s;
    struct err err = {0};

    (void)state;
    start(&s, garbage, false);
    const struct meet_config c = config(s.port, MEET_HOSTS);
    const int64_t limit_ms = clock_mono_ms() + LONG_MS;
    do { /* on a loaded machine the server may answer too late for it */
        struct meet *m = meet_start(&c, &err);
        assert_non_null(m);
        struct pollfd pfd = {.fd = meet_fd(m), .events = POLLIN};
        do {
            assert_int_equal(poll(&pfd, 1, LONG_MS), 1);
            meet_look(m, &view);
        } while (view.stage != NODE_OVER);
        meet_end(m, 0);
    } while (!strstr(view.err.msg, "answers") && clock_mono_ms() < limit_ms);
    assert_non_null(strstr(view.err.msg, "Address already in use: a server answers there with \"........\""));
    stop(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_a_node_names_it),
        cmocka_unit_test(test_a_node_of_a_silent_one),
        cmocka_unit_test(test_a_port_that_is_taken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
