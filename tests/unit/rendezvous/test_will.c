/* test_will.c - what the server does for a client that is no more, however it went. */
#include "rendezvous/requests.h"
#include "rendezvous/server.h"
#include "rendezvous/store_wire.h"

#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <cmocka.h>

enum { LONG_MS = 60000 };

static struct store *join(const struct store_server *server)
{
    struct err err = {0};
    struct store *s = store_connect("127.0.0.1", store_server_port(server), "job-1", LONG_MS, &err);

    if (!s)
        fail_msg("%s", err.msg);
    return s;
}

static struct store_server *start(const struct store_server_limits *limits)
{
    struct err err = {0};
    struct store_server *s = store_server_start(0, "job-1", limits, &err);

    if (!s)
        fail_msg("%s", err.msg);
    return s;
}

static void leave_will(struct store *s, const char *last)
{
    struct err err = {0};

    assert_int_equal(store_will_set(s, "last", last, strlen(last), LONG_MS, &err), 0);
    assert_int_equal(store_will_add(s, "ended", 1, LONG_MS, &err), 0);
}

static int64_t count(struct store *s)
{
    struct err err = {0};
    int64_t n;

    assert_int_equal(store_add(s, "ended", 0, &n, LONG_MS, &err), 0);
    return n;
}

static void expect_last(struct store *s, const char *want)
{
    cleanup_buf struct buf got = BUF_INIT(STORE_VALUE_BYTES);
    struct err err = {0};

    assert_int_equal(store_get(s, "last", &got, LONG_MS, &err), 0);
    assert_string_equal(buf_str(&got), want);
}

/* One waits for it already: it is woken. */
static void test_closed(void **state)
{
    struct store_server *server = start(NULL);
    cleanup_store struct store *a = join(server), *b = join(server);
    struct err err = {0};

    (void)state;
    leave_will(b, "b");
    assert_int_equal(count(a), 0);
    store_close(TAKE(b));
    assert_int_equal(store_wait_count(a, "ended", 1, LONG_MS, &err), 0);
    expect_last(a, "b");
    store_server_stop(server);
}

/* It dies while the server owes it an answer, or in the middle of a request; a stopped one is still there. */
static void test_killed(void **state)
{
    struct store_server *server = start(NULL);
    cleanup_store struct store *a = join(server);
    struct err err = {0};

    (void)state;
    for (int i = 0; i < 2; i++) {
        int ends[2];
        char ready;
        assert_int_equal(pipe(ends), 0);
        pid_t pid = fork();
        if (pid == 0) {
            struct store *b = join(server);
            leave_will(b, i ? "waited" : "stopped");
            if (write(ends[1], "r", 1) != 1)
                _exit(1);
            while (i == 0)
                pause();
            _exit(store_wait_count(b, "never", 1, LONG_MS, &err));
        }
        assert_int_equal(read(ends[0], &ready, 1), 1);
        if (i == 0) {
            kill(pid, SIGSTOP);
            assert_int_equal(waitpid(pid, NULL, WUNTRACED), pid);
            assert_int_equal(store_wait_count(a, "ended", 1, 300, &err), -1);
            assert_int_equal(err.kind, ERR_TIMEOUT);
        }
        kill(pid, SIGKILL);
        assert_int_equal(waitpid(pid, NULL, 0), pid);
        assert_int_equal(store_wait_count(a, "ended", i + 1, LONG_MS, &err), 0);
        expect_last(a, i ? "waited" : "stopped");
        close(ends[0]);
        close(ends[1]);
    }
    store_server_stop(server);
}

/* One that the server gave up because it said half a word and no more may be well. */
static void test_given_up_is_not_ended(void **state)
{
    const struct store_server_limits limits = {.speak_ms = 50};
    struct store_server *server = start(&limits);
    cleanup_store struct store *a = join(server), *b = join(server);
    cleanup_buf struct buf will = BUF_INIT(REQUESTS_WILL_BYTES);
    struct err err = {0};
    int64_t n;

    (void)state;
    leave_will(b, "b");
    const struct protocol_request r = {.op = OP_SET, .key = {"k", 1}};
    assert_int_equal(will_keep(&will, &r), STATUS_OK);
    assert_int_equal(send(b->fd, will.data, 3, MSG_NOSIGNAL), 3);
    struct pollfd pfd = {.fd = b->fd, .events = POLLIN};
    char byte;
    assert_int_equal(poll(&pfd, 1, LONG_MS), 1);
    assert_int_equal(recv(b->fd, &byte, 1, 0), 0); /* the server has hung up */
    assert_int_equal(store_add(a, "ended", 0, &n, LONG_MS, &err), 0);
    assert_int_equal(n, 0);
    store_server_stop(server);
}

static void test_bounds(void **state)
{
    static char large[REQUESTS_WILL_BYTES];
    struct store_server *server = start(NULL);
    cleanup_store struct store *a = join(server), *b = join(server);
    struct err err = {0};
    int64_t n;

    (void)state;
    assert_int_equal(store_will_set(b, "last", large, sizeof(large), LONG_MS, &err), -1);
    assert_int_equal(err.kind, ERR_INVALID);
    int kept = 0;
    while (store_will_add(b, "ended", 1, LONG_MS, &err) == 0)
        kept++;
    assert_true(kept > 3 && kept < 200 && store_usable(b));
    /* What cannot be done is passed over. */
    assert_int_equal(store_set(a, "ended", "text", 4, LONG_MS, &err), 0);
    store_close(TAKE(b));
    b = join(server);
    assert_int_equal(store_will_add(b, "ended", 1, LONG_MS, &err), 0);
    assert_int_equal(store_will_add(b, "after", 1, LONG_MS, &err), 0);
    store_close(TAKE(b));
    assert_int_equal(store_wait_count(a, "after", 1, LONG_MS, &err), 0);
    assert_int_equal(store_add(a, "ended", 1, &n, LONG_MS, &err), -1);
    store_server_stop(server);
}

static void test_requests_by_themselves(void **state)
{
    static struct table t = {.max_keys = 3, .max_bytes = 100};
    cleanup_buf struct buf will = BUF_INIT(64);
    const struct protocol_request set = {.op = OP_SET, .key = {"a", 1}, .value = {"12345", 5}};
    const struct protocol_request add = {.op = OP_ADD, .key = {"n", 1}, .number = -7};
    struct view got;
    int64_t number;

    (void)state;
    assert_int_equal(will_keep(&will, &set), STATUS_OK);
    assert_int_equal(will_keep(&will, &add), STATUS_OK);
    const size_t before = will.len;
    assert_int_equal(will_keep(&will, &set), STATUS_FULL);
    assert_int_equal(will.len, before);
    will_apply(&will, &t);
    will_apply(&will, &t);
    assert_true(table_get(&t, set.key, &got) && got.len == 5);
    assert_true(table_get(&t, add.key, &got) && protocol_number(got, &number) && number == -14);
    table_release(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_closed),
        cmocka_unit_test(test_killed),
        cmocka_unit_test(test_given_up_is_not_ended),
        cmocka_unit_test(test_bounds),
        cmocka_unit_test(test_requests_by_themselves),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
