/* test_health.c - the listener answers, refuses, and outlives clients that are slow, greedy or many. */
#include "kube/health.h"

#include "rig.h"
#include "test.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static int get_ok(void *ctx, struct buf *body)
{
    struct err err;

    assert_int_equal(buf_puts(body, ctx ? "not synced\n" : "ok\n", &err), 0);
    return ctx ? 503 : 200;
}

static int get_large(void *ctx, struct buf *body)
{
    struct err err;

    (void)ctx;
    while (buf_puts(body, "metric_with_a_long_name_total 123456789\n", &err) == 0)
        ;
    return 200;
}

static const struct health_page pages[] = {
    {"/healthz", get_ok, NULL, NULL},
    {"/readyz", get_ok, "", NULL},
    {"/metrics", get_large, NULL, "text/plain; version=0.0.4"},
};

static int64_t test_now;

static int64_t read_now(void *ctx)
{
    (void)ctx;
    return test_now;
}

struct client {
    struct kube_loop *loop;
    int fd;
    char got[2 << 20];
    size_t n;
    bool closed;
};

static void dial(struct client *c, struct kube_loop *l, int port)
{
    struct sockaddr_in sa = {
        .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};

    *c = (struct client){.loop = l, .fd = socket(AF_INET, SOCK_STREAM, 0)};
    assert_int_equal(connect(c->fd, (struct sockaddr *)&sa, sizeof(sa)), 0);
    assert_int_equal(fcntl(c->fd, F_SETFL, O_NONBLOCK), 0);
}

static bool closed(void *ctx)
{
    struct client *c = ctx;

    for (;;) {
        ssize_t n = recv(c->fd, c->got + c->n, sizeof(c->got) - c->n - 1, 0);
        if (n <= 0) {
            c->closed = n == 0 || (n < 0 && errno != EAGAIN);
            break;
        }
        c->n += (size_t)n;
    }
    c->got[c->n] = '\0';
    return c->closed;
}

static void say(struct client *c, const char *text)
{
    assert_int_equal(send(c->fd, text, strlen(text), MSG_NOSIGNAL), strlen(text));
}

static struct health *listen_on(struct kube_loop *l)
{
    struct err err;
    struct health *h = health_new(l, "127.0.0.1:0", pages, ARRAY_LEN(pages), &err);

    assert_non_null(h);
    assert_in_range(health_port(h), 1, 65535);
    return h;
}

static struct client one;

static void test_pages(void **ctx)
{
    static const struct {
        const char *request, *answer, *body;
    } rows[] = {
        {"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP/1.1 200 OK\r\n", "\r\n\r\nok\n"},
        {"GET /readyz?verbose HTTP/1.1\r\n\r\n", "HTTP/1.1 503 ", "\r\n\r\nnot synced\n"},
        {"GET /healthz/x HTTP/1.1\r\n\r\n", "HTTP/1.1 404 ", "no such page"},
        {"HEAD /healthz HTTP/1.1\r\n\r\n", "HTTP/1.1 200 OK\r\n", "Content-Length: 3"},
        {"POST /healthz HTTP/1.1\r\n\r\n", "HTTP/1.1 405 ", "only GET"},
        {"\r\n\r\n", "HTTP/1.1 405 ", ""},
        {"GET\r\n\r\n", "HTTP/1.1 405 ", ""},
    };
    struct err err;
    cleanup_kube_loop struct kube_loop *l = kube_loop_new(clock_system(), &err);
    cleanup_health struct health *h = listen_on(l);

    (void)ctx;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        dial(&one, l, health_port(h));
        say(&one, rows[i].request);
        rig_until(l, closed, &one);
        if (strncmp(one.got, rows[i].answer, strlen(rows[i].answer)) != 0 || !strstr(one.got, rows[i].body))
            fail_msg("row %zu: %s", i, one.got);
        close(one.fd);
    }
    assert_null(strstr(one.got, "ok\n"));
}

static void test_request_byte_by_byte_and_large_answer(void **ctx)
{
    static const char request[] = "GET /metrics HTTP/1.1\r\n\r\n";
    struct err err;
    cleanup_kube_loop struct kube_loop *l = kube_loop_new(clock_system(), &err);
    cleanup_health struct health *h = listen_on(l);

    (void)ctx;
    dial(&one, l, health_port(h));
    for (size_t i = 0; i < sizeof(request) - 1; i++) {
        assert_int_equal(send(one.fd, request + i, 1, MSG_NOSIGNAL), 1);
        assert_int_equal(kube_loop_turn(l, 5, &err), 0);
    }
    rig_until(l, closed, &one);
    assert_non_null(strstr(one.got, "version=0.0.4"));
    const char *body = strstr(one.got, "\r\n\r\n") + 4;
    assert_in_range(strlen(body), (1 << 20) - 100, 1 << 20);
    close(one.fd);
}

static void test_greedy_request_is_dropped(void **ctx)
{
    struct err err;
    cleanup_kube_loop struct kube_loop *l = kube_loop_new(clock_system(), &err);
    cleanup_health struct health *h = listen_on(l);
    char text[5001];

    (void)ctx;
    memset(text, 'x', 5000);
    text[5000] = '\0';
    dial(&one, l, health_port(h));
    say(&one, text);
    rig_until(l, closed, &one);
    assert_int_equal(one.n, 0);
    close(one.fd);
}

/* As many as there are places, and silent. */
static void fill(int fds[static HEALTH_CLIENTS_MAX], struct kube_loop *l, int port)
{
    struct err err;

    for (int i = 0; i < HEALTH_CLIENTS_MAX; i++) {
        dial(&one, l, port);
        fds[i] = one.fd;
        assert_int_equal(kube_loop_turn(l, 20, &err), 0);
    }
    dial(&one, l, port);
    say(&one, "GET /healthz HTTP/1.1\r\n\r\n");
    for (int i = 0; i < 10; i++)
        assert_int_equal(kube_loop_turn(l, 1, &err), 0);
    assert_false(closed(&one));
}

static int count_closed(const int fds[static HEALTH_CLIENTS_MAX])
{
    char byte;
    int n = 0;

    for (int i = 0; i < HEALTH_CLIENTS_MAX; i++)
        n += recv(fds[i], &byte, 1, MSG_DONTWAIT) >= 0;
    return n;
}

static void close_all(const int fds[static HEALTH_CLIENTS_MAX])
{
    for (int i = 0; i < HEALTH_CLIENTS_MAX; i++)
        close(fds[i]);
    close(one.fd);
}

/* A full house, and a probe that is answered when so long has passed: how many it closes, the oldest among them. */
static int close_after(int64_t ms)
{
    int fds[HEALTH_CLIENTS_MAX];
    char byte;
    struct err err;
    cleanup_kube_loop struct kube_loop *l =
        kube_loop_new((struct clock){read_now, read_now, read_now, NULL, NULL}, &err);
    cleanup_health struct health *h = listen_on(l);

    fill(fds, l, health_port(h));
    assert_int_equal(count_closed(fds), 0);
    test_now += ms;
    rig_until(l, closed, &one);
    assert_non_null(strstr(one.got, "ok\n"));
    assert_int_equal(recv(fds[0], &byte, 1, MSG_DONTWAIT), 0);
    int n = count_closed(fds);
    close_all(fds);
    return n;
}

/* When silent clients hold all slots, a probe is still answered: the server closes the oldest connection, and no other. */
static void test_silent_clients_are_displaced(void **ctx)
{
    (void)ctx;
    assert_int_equal(close_after(101), 1);
}

/* Time, which the test moves, ends them all. */
static void test_slow_clients_are_dropped(void **ctx)
{
    (void)ctx;
    assert_int_equal(close_after(5001), HEALTH_CLIENTS_MAX);
}

static void test_addresses(void **ctx)
{
    static const char *const bad[] = {
        "",       "8080",        "127.0.0.1", "127.0.0.1:", "127.0.0.1:x", "127.0.0.1:65536", "localhost:0",
        "[::1:0", "256.0.0.1:0", "::1:0:"};
    struct err err;
    cleanup_kube_loop struct kube_loop *l = kube_loop_new(clock_system(), &err);
    char taken[32];

    (void)ctx;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        if (health_new(l, bad[i], pages, 1, &err))
            fail_msg("accepted \"%s\"", bad[i]);
        assert_int_equal(err.kind, ERR_INVALID);
    }
    cleanup_health struct health *any = health_new(l, ":0", pages, ARRAY_LEN(pages), &err);
    assert_non_null(any);
    dial(&one, l, health_port(any)); /* over IPv4, whatever else it listens on */
    say(&one, "GET /healthz HTTP/1.1\r\n\r\n");
    rig_until(l, closed, &one);
    assert_non_null(strstr(one.got, "ok\n"));
    close(one.fd);
    snprintf(taken, sizeof(taken), ":%d", health_port(any));
    assert_null(health_new(l, taken, pages, 1, &err));
    assert_int_equal(err.kind, ERR_FATAL);
    assert_int_equal(err.code, EADDRINUSE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pages),
        cmocka_unit_test(test_request_byte_by_byte_and_large_answer),
        cmocka_unit_test(test_greedy_request_is_dropped),
        cmocka_unit_test(test_silent_clients_are_displaced),
        cmocka_unit_test(test_slow_clients_are_dropped),
        cmocka_unit_test(test_addresses),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
