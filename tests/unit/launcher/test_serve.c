/* test_serve.c - the launcher's HTTP server answers every request, and survives clients that send none. Its clock stands unless a
 * client comes or the test moves it: a client that loses its core is not late. */
#include "launcher/progress/serve.h"

#include "../ports.h"
#include "rendezvous/net.h"
#include "test.h"

#include <dirent.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#define GET "GET /progress HTTP/1.1\r\nHost: x\r\n\r\n"

enum { FLOOD = 100, PLACES = 32, EVICT_AGE_MS = 100, DEADLINE_MS = 2000 }; /* as in serve.c */

static int port;

static _Atomic int64_t now_ms = 1000;

/* The linker puts it instead of clock_mono_ms (CMakeLists.txt). */
int64_t __wrap_clock_mono_ms(void);

int64_t __wrap_clock_mono_ms(void)
{
    return atomic_load(&now_ms);
}

static struct answer at_step(int64_t step)
{
    struct answer a = {.job_uid = "1f0c", .restarts = step, .straggler_rank = -1};

    progress_init(&a.progress);
    a.progress.now.step = step;
    return a;
}

static struct serve *start(void)
{
    const struct answer a = at_step(7);
    struct err err = {0};
    struct serve *s = serve_start(port = ports_take(), &a, &err);

    assert_non_null(s);
    return s;
}

/* From 127.0.0.`host`. */
static int dial_from(uint32_t host)
{
    const struct sockaddr_in from = {.sin_family = AF_INET,
                                     .sin_addr.s_addr = htonl(INADDR_LOOPBACK - 1 + host)};
    const struct sockaddr_in to = {
        .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_true(fd >= 0 && bind(fd, (const struct sockaddr *)&from, sizeof(from)) == 0);
    assert_int_equal(connect(fd, (const struct sockaddr *)&to, sizeof(to)), 0);
    return fd;
}

/* From another address each time, and so much later that a place is free: one alone is served so often and no more. */
static int dial(void)
{
    static uint32_t count;

    atomic_fetch_add(&now_ms, EVICT_AGE_MS / PLACES + 1);
    return dial_from(2 + count++ % 200);
}

static void say(int fd, const char *text)
{
    assert_int_equal(send(fd, text, strlen(text), MSG_NOSIGNAL), strlen(text));
}

/* Up to the end of the connection, and close it. *reset: it was broken off. */
static const char *hear(int fd, bool *reset)
{
    static char got[8192];
    size_t len = 0;
    ssize_t n;

    while ((n = recv(fd, got + len, sizeof(got) - 1 - len, 0)) > 0)
        len += (size_t)n;
    assert_true(n == 0 || errno == ECONNRESET);
    if (reset)
        *reset = n < 0;
    else
        assert_int_equal(n, 0);
    got[len] = '\0';
    close(fd);
    return got;
}

static void expect_answer(void)
{
    const int fd = dial();

    say(fd, GET);
    assert_non_null(strstr(hear(fd, NULL), "\"step\": 7}\n"));
}

static int descriptors(void)
{
    cleanup_closedir DIR *d = opendir("/proc/self/fd");
    int n = 0;

    assert_non_null(d);
    while (readdir(d))
        n++;
    return n;
}

static void test_taken_port(void **state)
{
    struct serve *s = start();
    const struct answer a = at_step(1);
    struct err err = {0};
    char want[80];

    (void)state;
    const int before = descriptors();
    assert_null(serve_start(port, &a, &err));
    assert_int_equal(err.kind, ERR_CONFLICT);
    snprintf(want, sizeof(want), "cannot listen at port %d", port);
    assert_non_null(strstr(err.msg, want));
    assert_int_equal(descriptors(), before);
    expect_answer();
    serve_stop(s);
}

/* Each of these gets its reply, whole. */
static void test_manners(void **state)
{
    static const char more[10000];
    struct serve *s = start();

    (void)state;
    int fd = dial(); /* byte by byte */
    for (const char *p = GET; *p; p++)
        say(fd, (const char[]){*p, '\0'});
    assert_non_null(strstr(hear(fd, NULL), "\"step\": 7}\n"));
    fd = dial(); /* half closed */
    say(fd, GET);
    shutdown(fd, SHUT_WR);
    assert_non_null(strstr(hear(fd, NULL), "\"step\": 7}\n"));
    fd = dial(); /* pipelined: one reply, and the end */
    say(fd, GET GET);
    const char *first = strstr(hear(fd, NULL), "HTTP/1.1 200 ");
    assert_non_null(first);
    assert_null(strstr(first + 1, "HTTP/1.1"));
    fd = dial(); /* a body that continues behind the reply: not answered by a reset */
    say(fd, "GET /progress HTTP/1.1\r\nContent-Length: 100000\r\n\r\n");
    assert_int_equal(net_wait(fd, POLLIN, 600000), 1);
    for (int i = 0; i < 10; i++) {
        assert_int_equal(send(fd, more, sizeof(more), MSG_NOSIGNAL), sizeof(more));
        (void)net_wait(-1, 0, 2); /* gives a server that resets the time for it */
    }
    assert_non_null(strstr(hear(fd, NULL), "\"step\": 7}\n"));
    fd = dial(); /* a head without end */
    for (int i = 0; i < 500; i++)
        say(fd, "X: 7890\r\n");
    assert_non_null(strstr(hear(fd, NULL), "HTTP/1.1 431 "));
    serve_stop(s);
}

/* Those who leave early, or break off, cost nothing that stays. */
static void test_leave_early(void **state)
{
    const struct linger at_once = {.l_onoff = 1};
    struct serve *s = start();
    const int before = descriptors();

    (void)state;
    for (int i = 0; i < 20; i++) {
        const int fd = dial();
        if (i & 1)
            say(fd, i & 2 ? GET : "GET /pro");
        if (i & 4)
            setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
        close(fd);
    }
    expect_answer();
    while (descriptors() > before)
        (void)net_wait(-1, 0, 1);
    serve_stop(s);
}

/* A body of 64 MiB is cut off long before its end. */
static void test_large_body(void **state)
{
    static const char piece[1 << 16];
    struct serve *s = start();
    size_t sent = 0;
    bool reset;

    (void)state;
    const int fd = dial();
    say(fd, "POST /progress HTTP/1.1\r\nContent-Length: 67108864\r\n\r\n");
    while (sent < 64 << 20) {
        const ssize_t n = send(fd, piece, sizeof(piece), MSG_NOSIGNAL);
        if (n < 0)
            break;
        sent += (size_t)n;
    }
    assert_in_range(sent, 0, 32 << 20);
    (void)hear(fd, &reset);
    expect_answer();
    serve_stop(s);
}

/* A hundred clients of one address that send nothing, or half a request, or do not read: the next one is answered, and they are closed.
 * No more than the places' descriptors are open meanwhile. */
static void test_flood(void **state)
{
    struct serve *s = start();
    const int before = descriptors();
    int fds[FLOOD];

    (void)state;
    for (int i = 0; i < FLOOD; i++) {
        fds[i] = dial_from(1);
        const char *text = i % 3 == 1 ? "GET /progress HTTP" : GET;
        if (i % 3)
            (void)!send(fds[i], text, strlen(text), MSG_NOSIGNAL); /* most are reset */
    }
    expect_answer();
    assert_in_range(descriptors() - before - FLOOD, 1, PLACES);
    atomic_fetch_add(&now_ms, DEADLINE_MS);
    for (int i = 0; i < FLOOD; i++) {
        bool reset;
        const char *got = hear(fds[i], &reset); /* waits until the server is done with it */
        if (i % 3 == 2 && !reset && *got)       /* closed before its request came: an end without a reset */
            assert_non_null(strstr(got, "\"step\": 7}\n"));
        else if (i % 3 != 2)
            assert_string_equal(got, "");
    }
    expect_answer();
    serve_stop(s);
}

/* A report that changes while others read it is read as a whole. */
static void test_tell(void **state)
{
    struct serve *s = start();
    int64_t last = 7;

    (void)state;
    for (int i = 0; i < 20; i++) {
        const int fd = dial();
        long long restarts, step;
        say(fd, GET);
        for (int64_t end = last + 1000; last < end;) {
            const struct answer a = at_step(++last);
            serve_set(s, &a);
        }
        const char *got = strstr(hear(fd, NULL), "\"restarts\"");
        assert_non_null(got);
        assert_int_equal(sscanf(got, "\"restarts\": %lld, \"time\": \"\", \"step\": %lld}", &restarts, &step),
                         2);
        assert_int_equal(restarts, step);
        assert_in_range(step, last - 1000, last);
    }
    serve_stop(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_taken_port), cmocka_unit_test(test_manners), cmocka_unit_test(test_leave_early),
        cmocka_unit_test(test_large_body), cmocka_unit_test(test_flood),   cmocka_unit_test(test_tell),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
