/* test_await_end.c - ranks that take no part await the end of the run; and who looks for rank 0 finds it, or another program. */
#include "../ports.h"
#include "collectives/watch_wire.h"
#include "one_rank.h"
#include "ranks.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <cmocka.h>

/* A rank that takes no part: its exit status is the run's. */
static pid_t start_awaiting(struct collectives_config cfg, int64_t timeout_ms)
{
    struct err err = {0};
    int code = RANK_FAILED;
    const pid_t pid = fork();

    if (pid == 0) {
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
    const int rc = c ? one_rank_sums_up(c) : RANK_FAILED;

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
        assert_int_equal(one_rank_ended(waiting[i]), killed ? 140 : RUN_ENDS_WITH);
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
    assert_int_equal(one_rank_ended(start_awaiting(cfg, 200)), 138);
    assert_true(pipe2(ready, O_CLOEXEC) == 0 && pipe2(go, O_CLOEXEC) == 0);
    const pid_t zero = fork();
    if (zero == 0)
        _exit(serve_one(&cfg, ready[1], go[0]));
    assert_int_equal(read(ready[0], &byte, 1), 1);
    struct collectives_config other = cfg;
    other.run_id = "another";
    assert_int_equal(one_rank_ended(start_awaiting(other, RANKS_TIMEOUT_MS)), 1);
    const pid_t first = start_awaiting(cfg, RANKS_TIMEOUT_MS), second = start_awaiting(cfg, RANKS_TIMEOUT_MS);
    const pid_t refused = waitpid(-1, &status, 0);
    assert_true(refused == first || refused == second);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 138);
    assert_int_equal(write(go[1], &byte, 1), 1);
    assert_int_equal(one_rank_ended(refused == first ? second : first), RUN_ENDS_WITH);
    assert_int_equal(one_rank_ended(zero), 0);
    for (int i = 0; i < 2; i++) {
        close(ready[i]);
        close(go[i]);
    }
}

/* A listener that is no rank 0: it closes every connection (a proxy before the pod is ready), or accepts none. After `turns`
 * connections it writes to `said`, and stays until it is killed. */
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
        assert_int_equal(one_rank_ended(start_awaiting(cfg, 300)), 138);
        end_by_force(other);
    }
    const pid_t proxy = start_listener(cfg.master_port, true, 3, told[1]);
    const pid_t waiting = start_awaiting(cfg, RANKS_TIMEOUT_MS);
    assert_int_equal(read(told[0], &byte, 1), 1);
    end_by_force(proxy);
    const pid_t zero = start_rank_0(&cfg, 0);
    assert_int_equal(one_rank_ended(waiting), RUN_ENDS_WITH);
    assert_int_equal(one_rank_ended(zero), 0);
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
    assert_int_equal(one_rank_ended(waiting), RUN_ENDS_WITH);
    assert_int_equal(one_rank_ended(zero), 0);
}

/* At its deadline a rank reports whom it looked for, and where. */
static void test_looking_for_rank_0_at_a_listener_that_closes(void **state)
{
    static const struct ranks_layout two_by_two = {.world = 4, .per_pod = 2};
    char run_id[64], said[300], where[64];
    const int port = ports_take();
    int fds[2];

    (void)state;
    assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
    const pid_t other = start_listener(port, true, 0, -1);
    const int code =
        one_rank_ended(one_rank_start(ranks_pods_config(2, &two_by_two, port, run_id), 300, fds[1]));
    one_rank_said(fds[0], said, sizeof(said));
    snprintf(where, sizeof(where), "deadline passed while looking for rank 0 at 127.0.0.1:%d: ", port);
    if (code != 138 || !strstr(said, where))
        fail_msg("ended with %d: %s", code, said);
    end_by_force(other);
    close(fds[0]);
    close(fds[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ranks_that_await_the_end),
        cmocka_unit_test(test_awaiting_in_vain),
        cmocka_unit_test(test_awaiting_at_a_listener_that_is_not_rank_0),
        cmocka_unit_test(test_awaiting_at_the_rank_0_of_an_earlier_round),
        cmocka_unit_test(test_looking_for_rank_0_at_a_listener_that_closes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
