/* test_store.c - a real server and real clients, kind and unkind. */
#include "common/clock.h"
#include "host/resolve.h"
#include "rendezvous/server.h"
#include "rendezvous/store.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>

#include <cmocka.h>

enum { LONG_MS = 60000 };

static struct store_server *start(const struct store_server_limits *limits)
{
    struct err err = {0};
    struct store_server *s = store_server_start(0, "job-1", limits, &err);

    if (!s)
        fail_msg("%s", err.msg);
    return s;
}

static struct store *join(const struct store_server *server)
{
    struct err err = {0};
    struct store *s = store_connect("127.0.0.1", store_server_port(server), "job-1", LONG_MS, &err);

    if (!s)
        fail_msg("%s", err.msg);
    return s;
}

static void test_set_get_add_compare(void **state)
{
    struct store_server *server = start(NULL);
    cleanup_store struct store *a = join(server), *b = join(server);
    cleanup_buf struct buf got = BUF_INIT(STORE_VALUE_BYTES);
    struct err err = {0};
    int64_t n = 0;

    (void)state;
    assert_int_equal(store_set(a, "addr/0", "10.0.0.1:5", 10, LONG_MS, &err), 0);
    assert_int_equal(store_get(b, "addr/0", &got, LONG_MS, &err), 0);
    assert_string_equal(buf_str(&got), "10.0.0.1:5");
    assert_int_equal(store_add(a, "n", 2, &n, LONG_MS, &err), 0);
    assert_int_equal(store_add(b, "n", -5, &n, LONG_MS, &err), 0);
    assert_int_equal(n, -3);
    assert_int_equal(store_add(b, "addr/0", 1, &n, LONG_MS, &err), -1);
    assert_int_equal(err.kind, ERR_INVALID);
    assert_int_equal(store_compare_set(a, "state", NULL, 0, "v1", 2, NULL, LONG_MS, &err), 0);
    buf_clear(&got);
    assert_int_equal(store_compare_set(b, "state", NULL, 0, "v2", 2, &got, LONG_MS, &err), -1);
    assert_int_equal(err.kind, ERR_CONFLICT);
    assert_string_equal(buf_str(&got), "v1");
    assert_int_equal(store_compare_set(b, "state", "v1", 2, "v2", 2, NULL, LONG_MS, &err), 0);
    store_server_stop(server);
}

static void test_largest_values(void **state)
{
    struct store_server *server = start(NULL);
    cleanup_store struct store *a = join(server);
    cleanup_buf struct buf got = BUF_INIT(2 * STORE_VALUE_BYTES);
    static char value[STORE_VALUE_BYTES + 1], key[STORE_KEY_BYTES + 2];
    struct err err = {0};

    (void)state;
    memset(value, 'v', sizeof(value));
    memset(key, 'k', STORE_KEY_BYTES);
    assert_int_equal(store_set(a, key, value, STORE_VALUE_BYTES, LONG_MS, &err), 0);
    assert_int_equal(store_get(a, key, &got, LONG_MS, &err), 0);
    assert_int_equal(got.len, STORE_VALUE_BYTES);
    assert_int_equal(
        store_compare_set(a, key, value, STORE_VALUE_BYTES, value, STORE_VALUE_BYTES, NULL, LONG_MS, &err),
        0);
    assert_int_equal(store_set(a, key, value, STORE_VALUE_BYTES + 1, LONG_MS, &err), -1);
    assert_int_equal(err.kind, ERR_INVALID);
    key[STORE_KEY_BYTES] = 'k';
    assert_int_equal(store_set(a, key, value, 1, LONG_MS, &err), -1);
    assert_int_equal(store_set(a, "", value, 1, LONG_MS, &err), -1);
    /* Refused on this side: the connection is as good as before. */
    assert_int_equal(store_set(a, "k", value, 1, LONG_MS, &err), 0);
    store_server_stop(server);
}

static void *set_late(void *arg)
{
    const struct timespec ts = {.tv_nsec = 50000000};
    struct err err = {0};
    int64_t n;

    nanosleep(&ts, NULL);
    if (store_set(arg, "late", "x", 1, LONG_MS, &err) < 0 ||
        store_add(arg, "count", 3, &n, LONG_MS, &err) < 0)
        return arg;
    return NULL;
}

static void test_waiting(void **state)
{
    struct store_server *server = start(NULL);
    cleanup_store struct store *a = join(server), *b = join(server);
    cleanup_buf struct buf got = BUF_INIT(STORE_VALUE_BYTES);
    struct err err = {0};
    pthread_t thread;
    void *failed;

    (void)state;
    assert_int_equal(pthread_create(&thread, NULL, set_late, b), 0);
    assert_int_equal(store_get(a, "late", &got, LONG_MS, &err), 0);
    assert_int_equal(store_wait_count(a, "count", 3, LONG_MS, &err), 0);
    assert_int_equal(pthread_join(thread, &failed), 0);
    assert_null(failed);
    /* In vain: the deadline, and the connection goes on. */
    assert_int_equal(store_wait_count(a, "count", 4, 20, &err), -1);
    assert_int_equal(err.kind, ERR_TIMEOUT);
    assert_non_null(strstr(err.msg, "\"count\""));
    assert_int_equal(store_get(a, "never", &got, 0, &err), -1);
    assert_int_equal(err.kind, ERR_TIMEOUT);
    assert_int_equal(store_get(a, "late", &got, LONG_MS, &err), 0);
    store_server_stop(server);
}

static void test_another_runs_id(void **state)
{
    struct store_server *server = start(NULL);
    struct err err = {0};

    (void)state;
    assert_null(store_connect("127.0.0.1", store_server_port(server), "job-2", LONG_MS, &err));
    assert_int_equal(err.kind, ERR_INVALID);
    assert_non_null(strstr(err.msg, "another run"));
    store_server_stop(server);
}

static void test_port_taken_and_nobody_there(void **state)
{
    struct store_server *server = start(NULL);
    struct err err = {0};
    int port = store_server_port(server);

    (void)state;
    assert_null(store_server_start(port, "x", NULL, &err));
    assert_int_equal(err.kind, ERR_CONFLICT);
    store_server_stop(server);
    assert_null(store_connect("127.0.0.1", port, "job-1", 30, &err));
    assert_int_equal(err.kind, ERR_TIMEOUT);
    assert_non_null(strstr(err.msg, ": deadline passed while trying to connect: Connection refused"));
    assert_null(store_connect("no-such-host.invalid", port, "job-1", 1, &err));
    assert_int_equal(err.kind, ERR_TIMEOUT);
}

static int look_in_vain(void *arg, const char *host, const char *service, const struct addrinfo *hints,
                        struct addrinfo **ret)
{
    (void)host, (void)service, (void)hints, (void)ret;
    return *(int *)arg;
}

/* What the resolver said stands in the error, whatever it is. */
static void test_a_name_that_does_not_resolve(void **state)
{
    static int codes[] = {EAI_NONAME, EAI_AGAIN, EAI_FAIL}; /* a look-up may go on behind the test */

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(codes); i++) {
        cleanup_resolver struct resolver *at = resolver_new_with("the.store", 29400, look_in_vain, &codes[i]);
        struct err err = {0};
        char want[200];
        snprintf(want, sizeof(want), "store the.store:29400: deadline passed while trying to connect: %s",
                 gai_strerror(codes[i]));
        for (int tries = 0; tries < 1000 && strcmp(err.msg, want) != 0; tries++)
            assert_null(store_connect_by(at, "the.store", 29400, "job-1", 20, &err));
        assert_string_equal(err.msg, want);
        assert_int_equal(err.kind, ERR_TIMEOUT);
        assert_int_equal(err.code, EAI_NONAME);
    }
}

static void test_bounds_of_the_server(void **state)
{
    const struct store_server_limits limits = {.clients = 2, .keys = 2, .bytes = 100};
    struct store_server *server = start(&limits);
    cleanup_store struct store *a = join(server), *b = join(server);
    struct err err = {0};
    char value[100] = "";

    (void)state;
    assert_null(store_connect("127.0.0.1", store_server_port(server), "job-1", LONG_MS, &err));
    assert_int_equal(err.kind, ERR_TRANSIENT);
    assert_int_equal(store_set(a, "1", value, 10, LONG_MS, &err), 0);
    assert_int_equal(store_set(a, "1", value, 100, LONG_MS, &err), -1);
    assert_int_equal(err.kind, ERR_INVALID);
    assert_non_null(strstr(err.msg, "full"));
    assert_int_equal(store_set(b, "2", value, 10, LONG_MS, &err), 0);
    assert_int_equal(store_set(b, "3", value, 10, LONG_MS, &err), -1);
    /* A place that becomes free is given again. */
    store_close(b);
    b = NULL;
    struct store *c;
    while (!(c = store_connect("127.0.0.1", store_server_port(server), "job-1", LONG_MS, &err)))
        assert_true(err.kind == ERR_TRANSIENT || err.kind == ERR_PEER);
    store_close(c);
    store_server_stop(server);
}

static int raw_connect(const struct store_server *server)
{
    struct sockaddr_in addr = {.sin_family = AF_INET, .sin_port = htons((uint16_t)store_server_port(server))};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(connect(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
    return fd;
}

/* Read until the server hangs up. */
static void expect_dropped(int fd)
{
    char bytes[4096];
    struct pollfd pfd = {.fd = fd, .events = POLLIN};
    ssize_t n;

    do {
        assert_true(poll(&pfd, 1, LONG_MS) > 0);
        n = recv(fd, bytes, sizeof(bytes), 0);
    } while (n > 0);
    close(fd);
}

static void test_garbage(void **state)
{
    struct store_server *server = start(NULL);
    cleanup_store struct store *good = join(server);
    char bytes[2000];
    struct err err = {0};

    (void)state;
    srand(7);
    for (int round = 0; round < 50; round++) {
        int fd = raw_connect(server);
        for (size_t i = 0; i < sizeof(bytes); i++)
            bytes[i] = (char)rand();
        if (send(fd, bytes, (size_t)rand() % sizeof(bytes) + 1, MSG_NOSIGNAL) > 0)
            expect_dropped(fd);
        else
            close(fd);
    }
    /* Behind a proper hello: a frame of 4 GiB. */
    int fd = raw_connect(server);
    char hello[8 + 256] = "TKstore1job-1";
    assert_int_equal(send(fd, hello, sizeof(hello), MSG_NOSIGNAL), sizeof(hello));
    assert_int_equal(send(fd, "\xff\xff\xff\xff", 4, MSG_NOSIGNAL), 4);
    expect_dropped(fd);
    assert_int_equal(store_set(good, "k", "v", 1, LONG_MS, &err), 0);
    store_server_stop(server);
}

/* Clients that say nothing, or half of something, or do not take their answers, are dropped; others do not wait. */
static void test_slow_clients(void **state)
{
    const struct store_server_limits limits = {.speak_ms = 200};
    struct store_server *server = start(&limits);
    cleanup_store struct store *good = join(server);
    struct err err = {0};
    int silent = raw_connect(server), half = raw_connect(server), stuck = raw_connect(server);
    char hello[8 + 256] = "TKstore1job-1";

    (void)state;
    assert_int_equal(send(half, hello, 100, MSG_NOSIGNAL), 100);
    assert_int_equal(send(stuck, hello, sizeof(hello), MSG_NOSIGNAL), sizeof(hello));
    assert_int_equal(send(stuck, "\x08\0\0\0abc", 7, MSG_NOSIGNAL), 7);
    assert_int_equal(store_set(good, "k", "v", 1, LONG_MS, &err), 0);
    expect_dropped(silent);
    expect_dropped(half);
    expect_dropped(stuck);
    /* The good one has been idle for as long, between messages: that is allowed. */
    assert_int_equal(store_set(good, "k", "v", 1, LONG_MS, &err), 0);
    store_server_stop(server);
}

/* More than may stand inside without a word, all with time to spare: one that comes after them gets in all the same. */
static void test_a_silent_crowd_is_displaced(void **state)
{
    const struct store_server_limits limits = {.speak_ms = 10 * LONG_MS};
    struct store_server *server = start(&limits);
    static int crowd[400];
    struct err err = {0};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(crowd); i++)
        crowd[i] = raw_connect(server);
    cleanup_store struct store *late = join(server);
    assert_int_equal(store_set(late, "k", "v", 1, LONG_MS, &err), 0);
    assert_in_range(store_server_unauthenticated(server), 100, ARRAY_LEN(crowd));
    for (size_t i = 0; i < ARRAY_LEN(crowd); i++)
        close(crowd[i]);
    store_server_stop(server);
}

static void test_pipelined_requests(void **state)
{
    struct store_server *server = start(NULL);
    char wire[8 + 256 + 3 * 64] = "TKstore1job-1", answer[64];
    size_t n = 8 + 256, got = 0;
    /* length, OP_ADD, key "n", number 1, no wait, two empty values */
    static const char add[] = "\x17\0\0\0\x03\x01n\x01\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0";

    (void)state;
    for (int i = 0; i < 3; i++, n += sizeof(add) - 1)
        memcpy(wire + n, add, sizeof(add) - 1);
    int fd = raw_connect(server);
    assert_int_equal(send(fd, wire, n, MSG_NOSIGNAL), n);
    while (got < 5 + 3 * 13) {
        struct pollfd pfd = {.fd = fd, .events = POLLIN};
        assert_true(poll(&pfd, 1, LONG_MS) > 0);
        ssize_t k = recv(fd, answer + got, sizeof(answer) - got, 0);
        assert_true(k > 0);
        got += (size_t)k;
    }
    assert_int_equal(answer[5 + 2 * 13 + 5], 3);
    close(fd);
    store_server_stop(server);
}

static void test_server_gone(void **state)
{
    struct store_server *server = start(NULL);
    cleanup_store struct store *a = join(server);
    struct err err = {0};

    (void)state;
    store_server_stop(server);
    assert_int_equal(store_set(a, "k", "v", 1, LONG_MS, &err), -1);
    assert_int_equal(err.kind, ERR_PEER);
    assert_int_equal(store_set(a, "k", "v", 1, LONG_MS, &err), -1);
    assert_int_equal(err.kind, ERR_PEER);
}

/* A server whose process is stopped answers nobody: the deadline does. */
static void test_server_stopped(void **state)
{
    int ends[2], port = 0, status;
    struct err err = {0};

    (void)state;
    assert_int_equal(pipe(ends), 0);
    pid_t pid = fork();
    if (pid == 0) {
        struct store_server *server = store_server_start(0, "job-1", NULL, &err);
        port = server ? store_server_port(server) : 0;
        if (write(ends[1], &port, sizeof(port)) < 0)
            _exit(1);
        for (;;)
            pause();
    }
    assert_int_equal(read(ends[0], &port, sizeof(port)), sizeof(port));
    cleanup_store struct store *a = store_connect("127.0.0.1", port, "job-1", LONG_MS, &err);
    assert_non_null(a);
    kill(pid, SIGSTOP);
    assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
    assert_int_equal(store_set(a, "k", "v", 1, 100, &err), -1);
    assert_int_equal(err.kind, ERR_TIMEOUT);
    kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    close(ends[0]);
    close(ends[1]);
}

static void *many(void *arg)
{
    struct err err = {0};
    int64_t n;
    cleanup_store struct store *s =
        store_connect("127.0.0.1", store_server_port(arg), "job-1", LONG_MS, &err);

    for (int i = 0; s && i < 50; i++)
        if (store_add(s, "n", 1, &n, LONG_MS, &err) < 0)
            return arg;
    return s && store_wait_count(s, "n", 16L * 50, LONG_MS, &err) == 0 ? NULL : arg;
}

static void test_16_clients_count_together(void **state)
{
    struct store_server *server = start(NULL);
    pthread_t threads[16];

    (void)state;
    for (int i = 0; i < 16; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, many, server), 0);
    for (int i = 0; i < 16; i++) {
        void *failed;
        assert_int_equal(pthread_join(threads[i], &failed), 0);
        assert_null(failed);
    }
    store_server_stop(server);
}

static int count_fds(void)
{
    int n = 0;
    cleanup_closedir DIR *d = opendir("/proc/self/fd");

    while (d && readdir(d))
        n++;
    return n;
}

/* A name server that answers when it reads a byte. */
static int look_late(void *arg, const char *host, const char *service, const struct addrinfo *hints,
                     struct addrinfo **ret)
{
    char byte;

    (void)host;
    return read(*(int *)arg, &byte, 1) == 1 ? getaddrinfo("127.0.0.1", service, hints, ret) : EAI_FAIL;
}

/* The deadline holds while a name is looked up; whoever tries again goes on with the same lookup. */
static void test_slow_name_server(void **state)
{
    struct store_server *server = start(NULL);
    const int port = store_server_port(server);
    struct err err = {0};
    int fds[2];

    (void)state;
    assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
    struct resolver *at = resolver_new_with("the.store", port, look_late, &fds[0]);
    for (int i = 0; i < 3; i++) {
        assert_null(store_connect_by(at, "the.store", port, "job-1", 20, &err));
        assert_int_equal(err.kind, ERR_TIMEOUT);
    }
    assert_int_equal(write(fds[1], "x", 1), 1);
    struct store *s = store_connect_by(at, "the.store", port, "job-1", LONG_MS, &err);
    assert_non_null(s);
    store_close(s);
    resolver_free(at);
    store_server_stop(server);
    close(fds[1]);
    close(fds[0]);
}

static void test_nothing_is_left(void **state)
{
    int before = count_fds();

    (void)state;
    for (int i = 0; i < 50; i++) {
        struct store_server *server = start(NULL);
        store_close(join(server));
        struct store *held = join(server);
        store_server_stop(server);
        store_close(held);
    }
    assert_int_equal(count_fds(), before);
}

static int64_t cpu_ms(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
    return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

/* Out of descriptors: clients that are there are served, one that waits at the door costs no CPU and is let in when
 * there is room again. */
static void test_out_of_descriptors(void **state)
{
    struct store_server *server = start(NULL);
    cleanup_store struct store *good = join(server);
    struct rlimit before, tight;
    struct err err = {0};
    const struct timespec tick = {.tv_nsec = 10000000};
    char hello[8 + 256] = "TKstore1job-1", answer[5];

    (void)state;
    int door = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    tight = before;
    tight.rlim_cur = (rlim_t)door + 1;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &tight), 0);
    struct sockaddr_in addr = {.sin_family = AF_INET, .sin_port = htons((uint16_t)store_server_port(server))};
    addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(connect(door, (struct sockaddr *)&addr, sizeof(addr)), 0);
    assert_int_equal(send(door, hello, sizeof(hello), MSG_NOSIGNAL), sizeof(hello));
    const int64_t cpu = cpu_ms(), begin = clock_mono_ms();
    for (int i = 0; i < 50; i++) {
        assert_int_equal(store_set(good, "k", "v", 1, LONG_MS, &err), 0);
        nanosleep(&tick, NULL);
    }
    const int64_t used = cpu_ms() - cpu, took = clock_mono_ms() - begin;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    /* A thread that spins takes all of a CPU, or what a busy machine leaves it, and this one sleeps nearly always. */
    assert_true(used * 4 < took);
    struct pollfd pfd = {.fd = door, .events = POLLIN};
    assert_true(poll(&pfd, 1, LONG_MS) > 0);
    assert_int_equal(recv(door, answer, sizeof(answer), MSG_WAITALL), sizeof(answer));
    close(door);
    store_server_stop(server);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_set_get_add_compare),
        cmocka_unit_test(test_largest_values),
        cmocka_unit_test(test_waiting),
        cmocka_unit_test(test_another_runs_id),
        cmocka_unit_test(test_port_taken_and_nobody_there),
        cmocka_unit_test(test_a_name_that_does_not_resolve),
        cmocka_unit_test(test_bounds_of_the_server),
        cmocka_unit_test(test_garbage),
        cmocka_unit_test(test_slow_clients),
        cmocka_unit_test(test_a_silent_crowd_is_displaced),
        cmocka_unit_test(test_pipelined_requests),
        cmocka_unit_test(test_server_gone),
        cmocka_unit_test(test_server_stopped),
        cmocka_unit_test(test_16_clients_count_together),
        cmocka_unit_test(test_out_of_descriptors),
        cmocka_unit_test(test_slow_name_server),
        cmocka_unit_test(test_nothing_is_left),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
