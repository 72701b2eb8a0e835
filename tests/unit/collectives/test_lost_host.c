/* test_lost_host.c - a pod whose packets vanish: no reset, no goodbye. Needs root, for a network of its own. */
#include "../ports.h"
#include "common/clock.h"
#include "ranks.h"

#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include <cmocka.h>

enum { SKIPPED = 77 };

/* Two ranks here, two in the other network. The names carry the process, so that tests may run side by side. */
static const struct ranks_layout layout = {.world = 4, .per_pod = 2};

struct net {
    char ns[32], here[16], there[16], addr[32];
};

/* The names are in the environment. */
static bool shell(const char *line)
{
    return system(line) == 0;
}

static bool net_make(struct net *n)
{
    const int id = (int)getpid();

    snprintf(n->ns, sizeof(n->ns), "lost-%d", id);
    snprintf(n->here, sizeof(n->here), "la%d", id);
    snprintf(n->there, sizeof(n->there), "lb%d", id);
    snprintf(n->addr, sizeof(n->addr), "10.%d.%d", 128 + id % 100, id / 100 % 250);
    setenv("NS", n->ns, 1);
    setenv("HERE", n->here, 1);
    setenv("THERE", n->there, 1);
    setenv("NET", n->addr, 1);
    return shell(
        "exec 2>/dev/null; ip netns add $NS && ip link add $HERE type veth peer name $THERE netns $NS && "
        "ip addr add $NET.1/24 dev $HERE && ip link set $HERE up && "
        "ip -n $NS addr add $NET.2/24 dev $THERE && ip -n $NS link set $THERE up && "
        "ip -n $NS link set lo up");
}

static void net_drop(void)
{
    (void)shell("exec 2>/dev/null; ip link del $HERE; ip netns del $NS");
}

/* In which call the survivors are when it happens. */
struct task {
    int port, said;
    const struct net *net;
    bool busy; /* numbers under way, or a wait without any */
};

static int work(struct collectives *c, const struct task *t)
{
    struct err err = {0};
    static float x[500000];
    char byte = 'r';
    int rc = c->all_reduce(c, x, ARRAY_LEN(x), NULL, RANKS_TIMEOUT_MS, &err);

    if (rc < 0 || write(t->said, &byte, 1) != 1)
        return RANK_FAILED;
    while (rc == 0 && t->busy)
        rc = c->all_reduce(c, x, ARRAY_LEN(x), NULL, RANKS_TIMEOUT_MS, &err);
    if (rc == 0 && c->rank >= 2)
        pause();
    if (rc == 0)
        rc = c->barrier(c, RANKS_TIMEOUT_MS, &err);
    return rc == 0 ? RANK_FAILED : collectives_exit_code(&err);
}

static pid_t start(int rank, const struct task *t)
{
    char run_id[64], addr[64];
    struct err err = {0};
    struct collectives_config cfg = ranks_pods_config(rank, &layout, t->port, run_id);
    pid_t pid = fork();

    if (pid != 0)
        return pid;
    if (rank >= 2) {
        char path[64];
        snprintf(path, sizeof(path), "/run/netns/%s", t->net->ns);
        cleanup_close int fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0 || setns(fd, CLONE_NEWNET) < 0)
            _exit(RANK_FAILED);
    }
    snprintf(addr, sizeof(addr), "%s.1", t->net->addr);
    cfg.master_addr = addr;
    struct collectives *c = collectives_open(&cfg, RANKS_TIMEOUT_MS, &err);
    if (!c)
        fprintf(stderr, "rank %d: %s\n", rank, err.msg);
    int rc = c ? work(c, t) : RANK_FAILED;
    collectives_close(c);
    _exit(rc);
}

static void lose(bool busy)
{
    struct net net;
    struct task t = {.net = &net, .port = ports_take(), .busy = busy};
    pid_t pids[4];
    int fds[2], status;

    if (!net_make(&net)) {
        net_drop();
        skip();
    }
    assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
    t.said = fds[1];
    for (int r = 0; r < 4; r++)
        pids[r] = start(r, &t);
    char bytes[4];
    for (int n = 0; n < 4;) { /* all are at work */
        ssize_t got = read(fds[0], bytes, sizeof(bytes));
        assert_true(got > 0);
        n += (int)got;
    }
    const int64_t begin = clock_mono_ms();
    assert_true(shell("ip link set $HERE down"));
    for (int r = 0; r < 2; r++) {
        assert_int_equal(waitpid(pids[r], &status, 0), pids[r]);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 140);
    }
    const int64_t took = clock_mono_ms() - begin;
    printf("noticed after %lld ms\n", (long long)took);
    for (int r = 2; r < 4; r++) {
        kill(pids[r], SIGKILL);
        assert_int_equal(waitpid(pids[r], &status, 0), pids[r]);
    }
    net_drop();
    close(fds[0]);
    close(fds[1]);
    assert_true(took < RANKS_TIMEOUT_MS / 2); /* that is not the deadline */
}

static void test_lost_while_waiting(void **state)
{
    (void)state;
    lose(false);
}

static void test_lost_with_numbers_under_way(void **state)
{
    (void)state;
    lose(true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lost_while_waiting),
        cmocka_unit_test(test_lost_with_numbers_under_way),
    };

    if (geteuid() != 0) {
        printf("needs root for a network namespace\n");
        return SKIPPED;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
