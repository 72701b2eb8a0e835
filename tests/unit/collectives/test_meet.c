/* test_meet.c - how ranks of several pods meet: late, many, twice, with the wrong words, among strangers; and a random
 * death at a random step. */
#include "../ports.h"
#include "collectives/watch_wire.h"
#include "common/clock.h"
#include "ranks.h"
#include "seed.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>

#include <cmocka.h>

static const struct ranks_layout two_by_two = {.world = 4, .per_pod = 2};

static int sums_up(struct collectives *c)
{
    struct err err = {0};
    static float x[40000];
    const size_t sizes[] = {1, 5000, ARRAY_LEN(x)};

    for (size_t k = 0; k < ARRAY_LEN(sizes); k++) {
        for (size_t i = 0; i < sizes[k]; i++)
            x[i] = (float)(c->rank + 1);
        RANK_OK(c->all_reduce(c, x, sizes[k], NULL, RANKS_TIMEOUT_MS, &err));
        for (size_t i = 0; i < sizes[k]; i++)
            RANK_CHECK(x[i] == (float)(c->world * (c->world + 1) / 2));
    }
    return 0;
}

static int sums_body(struct collectives *c, void *arg)
{
    (void)arg;
    return sums_up(c);
}

static void test_64_ranks_in_8_pods(void **state)
{
    (void)state;
    ranks_run_pods(&(struct ranks_layout){.world = 64, .per_pod = 8}, sums_body, NULL);
}

/* More pods than leaders are joined each to each. */
static void test_24_pods(void **state)
{
    (void)state;
    ranks_run_pods(&(struct ranks_layout){.world = 24, .per_pod = 1}, sums_body, NULL);
}

enum { COUNT_STRANGERS = -2 };

/* One rank by hand: its exit status tells how open ended, the pipe what was said. */
static pid_t start_rank(struct collectives_config cfg, int64_t timeout_ms, int said)
{
    pid_t pid = fork();

    if (pid != 0)
        return pid;
    struct err err = {0};
    struct collectives *c = collectives_open(&cfg, timeout_ms, &err);
    if (!c) {
        if (said >= 0 && write(said, err.msg, strlen(err.msg)) < 0)
            _exit(RANK_FAILED);
        _exit(collectives_exit_code(&err));
    }
    int rc = sums_up(c);
    if (rc == 0 && c->barrier(c, RANKS_TIMEOUT_MS, &err) < 0)
        rc = RANK_FAILED;
    if (rc == 0 && said == COUNT_STRANGERS && c->rank == 0 && c->unauthenticated == 0)
        rc = RANK_FAILED;
    collectives_close(c);
    _exit(rc);
}

static int ended(pid_t pid)
{
    int status;

    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void read_said(int fd, char *out, size_t size)
{
    ssize_t n = read(fd, out, size - 1);

    out[n > 0 ? n : 0] = '\0';
}

static void test_another_run_is_refused(void **state)
{
    char run_id[64], said[300];
    const int port = ports_take();
    int fds[2];
    pid_t pids[4];

    (void)state;
    assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
    for (int r = 0; r < 3; r++)
        pids[r] = start_rank(ranks_pods_config(r, &two_by_two, port, run_id), RANKS_TIMEOUT_MS, -1);
    struct collectives_config other = ranks_pods_config(3, &two_by_two, port, run_id);
    other.run_id = "another";
    assert_int_equal(ended(start_rank(other, RANKS_TIMEOUT_MS, fds[1])), 1);
    read_said(fds[0], said, sizeof(said));
    assert_non_null(strstr(said, "run id"));
    /* The others have noticed nothing. */
    pids[3] = start_rank(ranks_pods_config(3, &two_by_two, port, run_id), RANKS_TIMEOUT_MS, -1);
    for (int r = 0; r < 4; r++)
        assert_int_equal(ended(pids[r]), 0);
    close(fds[0]);
    close(fds[1]);
}

/* Ranks that disagree about the world, or are there twice, are told so. */
static void test_wrong_numbers_are_refused(void **state)
{
    char run_id[64], said[300];
    const int port = ports_take();
    int fds[2];

    (void)state;
    assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
    pid_t zero = start_rank(ranks_pods_config(0, &two_by_two, port, run_id), RANKS_TIMEOUT_MS, -1);
    struct collectives_config cfg = ranks_pods_config(2, &two_by_two, port, run_id);
    cfg.world = 6;
    assert_int_equal(ended(start_rank(cfg, RANKS_TIMEOUT_MS, fds[1])), 1);
    read_said(fds[0], said, sizeof(said));
    assert_non_null(strstr(said, "WORLD_SIZE=6 on rank 2, but 4 on rank 0"));
    pid_t one = start_rank(ranks_pods_config(2, &two_by_two, port, run_id), RANKS_TIMEOUT_MS, fds[1]);
    pid_t two = start_rank(ranks_pods_config(2, &two_by_two, port, run_id), RANKS_TIMEOUT_MS, fds[1]);
    read_said(fds[0], said, sizeof(said));
    assert_non_null(strstr(said, "two processes are rank 2"));
    /* One of an earlier round may be about to end: whoever was second may try again. */
    int status;
    const pid_t refused = waitpid(-1, &status, 0);
    assert_true((refused == one || refused == two) && WIFEXITED(status) && WEXITSTATUS(status) == 138);
    kill(zero, SIGKILL);
    kill(refused == one ? two : one, SIGKILL);
    for (int i = 0; i < 2; i++)
        assert_true(waitpid(-1, NULL, 0) > 0);
    close(fds[0]);
    close(fds[1]);
}

/* On one host: the name of a rank is taken, by one of an earlier round perhaps. */
static void test_a_rank_that_is_there_twice_may_try_again(void **state)
{
    struct collectives_config cfg = {
        .rank = 0, .world = 2, .local_rank = 0, .local_world = 2, .run_id = "twice"};
    char said[300];
    int fds[2], status;

    (void)state;
    cfg.master_port = ports_take();
    assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
    const pid_t pids[] = {start_rank(cfg, RANKS_TIMEOUT_MS, fds[1]),
                          start_rank(cfg, RANKS_TIMEOUT_MS, fds[1])};
    const pid_t refused = waitpid(-1, &status, 0);
    read_said(fds[0], said, sizeof(said));
    assert_non_null(strstr(said, "another process is rank 0 of this run already"));
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 138);
    cfg.rank = cfg.local_rank = 1;
    assert_int_equal(ended(start_rank(cfg, RANKS_TIMEOUT_MS, -1)), 0);
    assert_int_equal(ended(pids[refused == pids[0]]), 0);
    close(fds[0]);
    close(fds[1]);
}

static void test_missing_rank_is_named(void **state)
{
    char run_id[64], said[300];
    const int port = ports_take();
    int fds[2];
    pid_t pids[3];

    (void)state;
    assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
    for (int r = 0; r < 3; r++)
        pids[r] = start_rank(ranks_pods_config(r, &two_by_two, port, run_id), r == 1 ? 1000 : 3000,
                             r == 1 ? fds[1] : -1);
    assert_int_equal(ended(pids[1]), 138);
    read_said(fds[0], said, sizeof(said));
    assert_non_null(strstr(said, "waiting for rank 3"));
    assert_int_equal(ended(pids[0]), 138);
    (void)ended(pids[2]); /* 138, or 140 when rank 0 was first */
    close(fds[0]);
    close(fds[1]);
}

/* A rank that was killed while it waited, and started again, is welcome. */
static void test_rank_that_comes_again(void **state)
{
    char run_id[64];
    const int port = ports_take();
    pid_t pids[4];
    const struct timespec ts = {.tv_nsec = 50000000};

    (void)state;
    for (int r = 0; r < 3; r++)
        pids[r] = start_rank(ranks_pods_config(r, &two_by_two, port, run_id), RANKS_TIMEOUT_MS, -1);
    nanosleep(&ts, NULL);
    for (int r = 0; r < 3; r += 2) { /* rank 0 with its watch, too */
        kill(pids[r], SIGKILL);
        assert_int_equal(waitpid(pids[r], NULL, 0), pids[r]);
        pids[r] = start_rank(ranks_pods_config(r, &two_by_two, port, run_id), RANKS_TIMEOUT_MS, -1);
        nanosleep(&ts, NULL);
    }
    pids[3] = start_rank(ranks_pods_config(3, &two_by_two, port, run_id), RANKS_TIMEOUT_MS, -1);
    for (int r = 0; r < 4; r++)
        assert_int_equal(ended(pids[r]), 0);
}

/* A rank that takes no part: its exit status is the run's. */
static pid_t start_awaiting(struct collectives_config cfg, int64_t timeout_ms)
{
    struct err err = {0};
    int code = RANK_FAILED;
    const pid_t pid = fork();

    if (pid == 0) {
        alarm(2 * RANKS_TIMEOUT_MS / 1000);
        _exit(collectives_await_end(&cfg, timeout_ms, &code, &err) ? collectives_exit_code(&err) : code);
    }
    return pid;
}

/* Connections to this process' watch at the port whose other end has received an answer. */
static int count_answered(int port)
{
    int n = 0;

    for (int fd = 0; fd < 64; fd++) {
        struct sockaddr_in6 at = {0};
        struct tcp_info info = {0};
        socklen_t len = sizeof(at), size = sizeof(info);
        n += getsockname(fd, (struct sockaddr *)&at, &len) == 0 &&
             (at.sin6_family == AF_INET || at.sin6_family == AF_INET6) &&
             at.sin6_port == htons((uint16_t)port) &&
             getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) == 0 &&
             info.tcpi_bytes_acked >= sizeof(struct watch_head);
    }
    return n;
}

enum { RUN_ENDS_WITH = 7, N_AWAITING = 2 };

/* What the ranks that take part do: rank 0 ends the run, or dies when its watch has answered others. */
static int end_run(const struct collectives_config *cfg, int die_at)
{
    struct err err = {0};
    struct collectives *c = collectives_open(cfg, RANKS_TIMEOUT_MS, &err);
    const int rc = c ? sums_up(c) : RANK_FAILED;

    alarm(RANKS_TIMEOUT_MS / 1000);
    while (cfg->rank == 0 && die_at && count_answered(cfg->master_port) < die_at)
        poll(NULL, 0, 1);
    if (cfg->rank == 0 && die_at)
        raise(SIGKILL);
    if (c && die_at) /* it stays until rank 0 is gone */
        return c->barrier(c, RANKS_TIMEOUT_MS, &err) < 0 ? 0 : RANK_FAILED;
    if (c)
        collectives_end(c, RUN_ENDS_WITH, RANKS_TIMEOUT_MS);
    collectives_close(c);
    return rc;
}

static void await_the_end(const struct ranks_layout *l, bool killed)
{
    const int port = ports_take(), others = l->per_pod == 1 ? l->world : 0;
    struct ranks r = {.world = l->world};
    pid_t waiting[N_AWAITING];
    char run_id[64];

    for (int rank = 0; rank < l->world + N_AWAITING; rank++) {
        struct collectives_config cfg = ranks_pods_config(rank, l, port, run_id);
        cfg.awaiting = N_AWAITING;
        if (rank >= l->world)
            waiting[rank - l->world] = start_awaiting(cfg, RANKS_TIMEOUT_MS);
        else if ((r.pids[rank] = fork()) == 0)
            _exit(end_run(&cfg, killed ? others + N_AWAITING : 0));
    }
    ranks_wait(&r);
    for (int i = 0; i < N_AWAITING; i++)
        assert_int_equal(ended(waiting[i]), killed ? 140 : RUN_ENDS_WITH);
}

/* Ranks beyond those that take part hear of the end, whatever the transport; or that rank 0 is lost. */
static void test_ranks_that_await_the_end(void **state)
{
    static const struct ranks_layout layouts[] = {{.world = 1}, {.world = 2}, {.world = 2, .per_pod = 1}};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(layouts); i++) {
        await_the_end(&layouts[i], false);
        await_the_end(&layouts[i], true);
    }
}

/* Rank 0 of a run of one, whom one more awaits, until a byte comes. */
static int serve_one(const struct collectives_config *cfg, int ready, int go)
{
    struct err err = {0};
    char byte = 'r';
    struct collectives *c = collectives_open(cfg, RANKS_TIMEOUT_MS, &err);

    if (!c || write(ready, &byte, 1) != 1 || read(go, &byte, 1) != 1)
        return RANK_FAILED;
    collectives_end(c, RUN_ENDS_WITH, RANKS_TIMEOUT_MS);
    collectives_close(c);
    return 0;
}

/* Neither a stranger nor one too many is served; without rank 0 the wait ends at its deadline. */
static void test_awaiting_in_vain(void **state)
{
    char run_id[64], byte;
    struct collectives_config cfg = ranks_config(0, 1, run_id);
    int ready[2], go[2], status;

    (void)state;
    cfg.master_port = ports_take();
    cfg.awaiting = 1;
    assert_int_equal(ended(start_awaiting(cfg, 200)), 138);
    assert_true(pipe2(ready, O_CLOEXEC) == 0 && pipe2(go, O_CLOEXEC) == 0);
    const pid_t zero = fork();
    if (zero == 0)
        _exit(serve_one(&cfg, ready[1], go[0]));
    assert_int_equal(read(ready[0], &byte, 1), 1);
    struct collectives_config other = cfg;
    other.run_id = "another";
    assert_int_equal(ended(start_awaiting(other, RANKS_TIMEOUT_MS)), 1);
    const pid_t first = start_awaiting(cfg, RANKS_TIMEOUT_MS), second = start_awaiting(cfg, RANKS_TIMEOUT_MS);
    const pid_t refused = waitpid(-1, &status, 0);
    assert_true(refused == first || refused == second);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 138);
    assert_int_equal(write(go[1], &byte, 1), 1);
    assert_int_equal(ended(refused == first ? second : first), RUN_ENDS_WITH);
    assert_int_equal(ended(zero), 0);
    for (int i = 0; i < 2; i++) {
        close(ready[i]);
        close(go[i]);
    }
}

/* A listener that is no rank 0: it closes every connection (a proxy before the pod is ready), or accepts none. After `turns`
 * connections it tells `said`, and stays until it is killed. */
static pid_t start_listener(int port, bool closes, int turns, int said)
{
    const struct sockaddr_in addr = {
        .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;

    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    assert_true(bind(fd, (const struct sockaddr *)&addr, sizeof(addr)) == 0 && listen(fd, 16) == 0);
    const pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (!closes)
            pause();
        for (int n = 1;; n++) {
            close(accept(fd, NULL, NULL));
            if (n == turns && write(said, "c", 1) != 1)
                _exit(1);
        }
    }
    close(fd);
    return pid;
}

static void end_by_force(pid_t pid)
{
    kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static pid_t start_rank_0(const struct collectives_config *cfg, int die_at)
{
    const pid_t pid = fork();

    if (pid == 0)
        _exit(end_run(cfg, die_at));
    return pid;
}

/* Who closes the connection before it has said a word is not rank 0 that is lost, and who says none at all is not awaited
 * beyond the deadline. */
static void test_awaiting_at_a_listener_that_is_not_rank_0(void **state)
{
    char run_id[64], byte;
    struct collectives_config cfg = ranks_config(0, 1, run_id);
    int told[2];

    (void)state;
    cfg.master_port = ports_take();
    cfg.awaiting = 1;
    assert_int_equal(pipe2(told, O_CLOEXEC), 0);
    for (int closes = 0; closes < 2; closes++) {
        const pid_t other = start_listener(cfg.master_port, closes, 0, -1);
        assert_int_equal(ended(start_awaiting(cfg, 300)), 138);
        end_by_force(other);
    }
    const pid_t proxy = start_listener(cfg.master_port, true, 3, told[1]);
    const pid_t waiting = start_awaiting(cfg, RANKS_TIMEOUT_MS);
    assert_int_equal(read(told[0], &byte, 1), 1);
    end_by_force(proxy);
    const pid_t zero = start_rank_0(&cfg, 0);
    assert_int_equal(ended(waiting), RUN_ENDS_WITH);
    assert_int_equal(ended(zero), 0);
    close(told[0]);
    close(told[1]);
}

/* Rank 0 of the round before is still there when an idle rank comes, and ends then: its successor is looked for. */
static void test_awaiting_at_the_rank_0_of_an_earlier_round(void **state)
{
    char run_id[64];
    struct collectives_config cfg = ranks_config(0, 1, run_id), later;
    int status;

    (void)state;
    cfg.master_port = ports_take();
    cfg.awaiting = 1;
    later = cfg;
    later.restart_count = cfg.restart_count + 1;
    const pid_t waiting = start_awaiting(later, RANKS_TIMEOUT_MS), before = start_rank_0(&cfg, 1);
    assert_true(waitpid(before, &status, 0) == before && WIFSIGNALED(status));
    const pid_t zero = start_rank_0(&later, 0);
    assert_int_equal(ended(waiting), RUN_ENDS_WITH);
    assert_int_equal(ended(zero), 0);
}

/* Whom it looked for, and where, is what a rank says at its deadline. */
static void test_looking_for_rank_0_at_a_listener_that_closes(void **state)
{
    char run_id[64], said[300], where[64];
    const int port = ports_take();
    int fds[2];

    (void)state;
    assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
    const pid_t other = start_listener(port, true, 0, -1);
    const int code = ended(start_rank(ranks_pods_config(2, &two_by_two, port, run_id), 300, fds[1]));
    read_said(fds[0], said, sizeof(said));
    snprintf(where, sizeof(where), "deadline passed while looking for rank 0 at 127.0.0.1:%d: ", port);
    if (code != 138 || !strstr(said, where))
        fail_msg("ended with %d: %s", code, said);
    end_by_force(other);
    close(fds[0]);
    close(fds[1]);
}

enum { STRANGERS = 150 };

/* Every port that `pid` listens at, from the system's table. */
static int listening_ports(pid_t pid, int ports[8])
{
    char path[64], line[512];
    int n = 0;

    for (int v6 = 0; v6 < 2; v6++) {
        snprintf(path, sizeof(path), "/proc/%d/net/tcp%s", (int)pid, v6 ? "6" : "");
        cleanup_fclose FILE *f = fopen(path, "re");
        while (f && fgets(line, sizeof(line), f)) {
            unsigned port, st;
            unsigned long inode;
            char target[64], want[64];
            if (sscanf(line, " %*d: %*[0-9A-F]:%x %*[0-9A-F]:%*x %x %*s %*s %*s %*s %*s %lu", &port, &st,
                       &inode) != 3 ||
                st != 10)
                continue;
            snprintf(want, sizeof(want), "socket:[%lu]", inode);
            for (int fd = 0; fd < 64 && n < 8; fd++) {
                snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)pid, fd);
                ssize_t len = readlink(path, target, sizeof(target) - 1);
                target[len > 0 ? len : 0] = '\0';
                if (strcmp(target, want) == 0)
                    ports[n++] = (int)port;
            }
        }
    }
    return n;
}

static int visit(int port, bool speak)
{
    const struct sockaddr_in addr = {
        .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_true(fd >= 0);
    if (connect(fd, (const struct sockaddr *)&addr, sizeof(addr)) == 0 && speak)
        (void)!send(fd, "GET / HTTP/1.1\r\nHost: localhost\r\nUser-Agent: curious\r\n\r\n", 56, MSG_NOSIGNAL);
    return fd;
}

/* A scanner at every port of rank 0 and of rank 2, silent and not, while they wait and while they work. */
static void test_unauthenticated_at_every_port(void **state)
{
    char run_id[64];
    const int port = ports_take();
    int fds[STRANGERS], n_fds = 0, ports[8];
    pid_t pids[4];

    (void)state;
    for (int r = 0; r < 3; r++)
        pids[r] =
            start_rank(ranks_pods_config(r, &two_by_two, port, run_id), RANKS_TIMEOUT_MS, COUNT_STRANGERS);
    const struct timespec ts = {.tv_nsec = 10000000};
    while (listening_ports(pids[0], ports) < 2 || listening_ports(pids[2], ports) < 1)
        nanosleep(&ts, NULL);
    for (int who = 0; who < 3; who += 2) {
        int n = listening_ports(pids[who], ports);
        for (int i = 0; i < STRANGERS / 2; i++)
            fds[n_fds++] = visit(ports[i % n], i / n % 2 == 0);
    }
    pids[3] = start_rank(ranks_pods_config(3, &two_by_two, port, run_id), RANKS_TIMEOUT_MS, -1);
    for (int r = 0; r < 4; r++)
        assert_int_equal(ended(pids[r]), 0);
    for (int i = 0; i < n_fds; i++)
        close(fds[i]);
}

enum { IDLE = 1000, LORISES = 40 };

/* Connections that say one byte of a hello at a time, until the process is ended. */
static pid_t start_lorises(const int *ports, int n)
{
    const struct timespec ts = {.tv_nsec = 20000000};
    int fds[LORISES];
    const pid_t pid = fork();

    if (pid != 0)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (int i = 0; i < LORISES; i++)
        fds[i] = visit(ports[i % n], false);
    for (int at = 0;; at = (at + 1) % 8) {
        for (int i = 0; i < LORISES; i++)
            (void)!send(fds[i], &"TKwatch1"[at], 1, MSG_NOSIGNAL | MSG_DONTWAIT);
        nanosleep(&ts, NULL);
    }
}

/* A thousand that say nothing, and some that never finish, stand before every port of rank 0; then the others come. */
static void test_crowd_before_the_door(void **state)
{
    char run_id[64];
    const struct rlimit many = {4096, 4096};
    const struct timespec ts = {.tv_nsec = 10000000};
    const int port = ports_take();
    static int fds[IDLE];
    int ports[8];
    pid_t pids[4];

    (void)state;
    pids[0] = start_rank(ranks_pods_config(0, &two_by_two, port, run_id), RANKS_TIMEOUT_MS, COUNT_STRANGERS);
    while (listening_ports(pids[0], ports) < 2)
        nanosleep(&ts, NULL);
    if (setrlimit(RLIMIT_NOFILE, &many) < 0)
        skip();
    const pid_t lorises = start_lorises(ports, 2);
    for (int i = 0; i < IDLE; i++)
        fds[i] = visit(ports[i % 2], false);
    for (int r = 1; r < 4; r++)
        pids[r] = start_rank(ranks_pods_config(r, &two_by_two, port, run_id), RANKS_TIMEOUT_MS, -1);
    for (int r = 0; r < 4; r++)
        assert_int_equal(ended(pids[r]), 0);
    kill(lorises, SIGKILL);
    assert_int_equal(waitpid(lorises, NULL, 0), lorises);
    for (int i = 0; i < IDLE; i++)
        close(fds[i]);
}

/* Who has the right words and neither run id nor token is nobody: to the watch no rank 3, to a leader no rank 2. */
static void test_forged_words(void **state)
{
    const struct {
        uint64_t magic;
        uint8_t token[WATCH_TOKEN_BYTES];
        uint32_t kind, from, to;
    } link = {.magic = WATCH_MAGIC, .token = "guess", .kind = 1, .from = 2};
    const struct {
        struct watch_head head;
        struct watch_register said;
    } rank = {.head = {.type = WATCH_REGISTER, .rank = 3, .len = sizeof(struct watch_register)},
              .said = {.magic = WATCH_MAGIC, .version = WATCH_VERSION, .world = 4, .run_id = "guess"}};
    const struct timespec ts = {.tv_nsec = 10000000};
    const int port = ports_take();
    char run_id[64];
    int fds[4], ports[8];
    pid_t pids[4];

    (void)state;
    pids[0] = start_rank(ranks_pods_config(0, &two_by_two, port, run_id), RANKS_TIMEOUT_MS, COUNT_STRANGERS);
    while (listening_ports(pids[0], ports) < 2)
        nanosleep(&ts, NULL);
    for (int i = 0; i < 4; i++) {
        const void *words = i < 2 ? (const void *)&link : &rank;
        const size_t len = i < 2 ? sizeof(link) : sizeof(rank);
        fds[i] = visit(ports[i % 2], false);
        assert_int_equal(send(fds[i], words, len, MSG_NOSIGNAL), len);
    }
    for (int r = 1; r < 4; r++)
        pids[r] = start_rank(ranks_pods_config(r, &two_by_two, port, run_id), RANKS_TIMEOUT_MS, -1);
    for (int r = 0; r < 4; r++)
        assert_int_equal(ended(pids[r]), 0);
    for (int i = 0; i < 4; i++)
        close(fds[i]);
}

/* Reductions and messages without end, of changing sizes. arg: how many ranks have begun, shared by all. */
static int stream_body(struct collectives *c, void *arg)
{
    struct err err = {0};
    static float x[100000];

    atomic_fetch_add((atomic_int *)arg, 1);
    for (size_t step = 0;; step++) {
        const size_t n = step * 7919 % ARRAY_LEN(x);
        if (c->all_reduce(c, x, n, NULL, RANKS_TIMEOUT_MS, &err) < 0 ||
            (step % 5 == 0 &&
             c->broadcast(c, x, n, (int)(step % (size_t)c->world), RANKS_TIMEOUT_MS, &err) < 0) ||
            (step % 7 == 0 && c->barrier(c, RANKS_TIMEOUT_MS, &err) < 0))
            return collectives_exit_code(&err);
    }
}

static void test_killed_at_a_random_step(void **state)
{
    const unsigned seed = (unsigned)seed_of_run();
    unsigned rnd = seed;
    atomic_int *begun = mmap(NULL, sizeof(*begun), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    (void)state;
    assert_true(begun != MAP_FAILED);
    for (int round = 0; round < 12; round++) {
        struct ranks r;
        rnd = rnd * 1103515245u + 12345u;
        const struct ranks_layout l = {.world = 2 + (int)(rnd >> 16) % 7,
                                       .per_pod = 1 + (int)(rnd >> 20) % 3};
        const int victim = (int)(rnd >> 8) % l.world % 8;
        const struct timespec ts = {.tv_nsec = 50000000 + (long)(rnd >> 12) % 200 * 1000000L};
        atomic_store(begun, 0);
        ranks_start_pods(&r, &l, stream_body, begun);
        while (atomic_load(begun) < l.world) /* before, they wait for it as long as they may */
            poll(NULL, 0, 1);
        nanosleep(&ts, NULL);
        const int64_t begin = clock_mono_ms();
        kill(r.pids[victim < 0 ? 0 : victim], SIGKILL);
        ranks_wait(&r);
        for (int i = 0; i < l.world; i++)
            if (i != victim && !(WIFEXITED(r.status[i]) && (WEXITSTATUS(r.status[i]) == 140 ||
                                                            WEXITSTATUS(r.status[i]) == RANK_FAILED)))
                fail_msg("seed %u, round %d: %d ranks, %d per pod, rank %d killed: rank %d ended with %#x",
                         seed, round, l.world, l.per_pod, victim, i, (unsigned)r.status[i]);
        assert_true(clock_mono_ms() - begin < RANKS_TIMEOUT_MS / 2);
    }
    munmap(begun, sizeof(*begun));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_64_ranks_in_8_pods),
        cmocka_unit_test(test_24_pods),
        cmocka_unit_test(test_another_run_is_refused),
        cmocka_unit_test(test_a_rank_that_is_there_twice_may_try_again),
        cmocka_unit_test(test_wrong_numbers_are_refused),
        cmocka_unit_test(test_missing_rank_is_named),
        cmocka_unit_test(test_rank_that_comes_again),
        cmocka_unit_test(test_ranks_that_await_the_end),
        cmocka_unit_test(test_awaiting_in_vain),
        cmocka_unit_test(test_awaiting_at_a_listener_that_is_not_rank_0),
        cmocka_unit_test(test_awaiting_at_the_rank_0_of_an_earlier_round),
        cmocka_unit_test(test_looking_for_rank_0_at_a_listener_that_closes),
        cmocka_unit_test(test_forged_words),
        cmocka_unit_test(test_unauthenticated_at_every_port),
        cmocka_unit_test(test_crowd_before_the_door),
        cmocka_unit_test(test_killed_at_a_random_step),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
