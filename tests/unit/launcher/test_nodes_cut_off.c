/* test_nodes_cut_off.c - two nodes in two networks, and a cable that loses every packet for a while. Needs root, ip and
 * iptables; skipped without. */
#include "common/cleanup.h"
#include "crew.h"
#include "patience.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>

enum { SKIPPED = 77 };

enum { BEATS = 8 }; /* missed by a lost node */

static int networks[2] = {-1, -1};
static pid_t holder; /* of the second network */

static bool shell(const char *command)
{
    char quiet[300];

    snprintf(quiet, sizeof(quiet), "{ %s; } >/dev/null 2>&1", command);
    return system(quiet) == 0;
}

static int open_network(pid_t pid)
{
    char path[64];

    snprintf(path, sizeof(path), "/proc/%d/ns/net", (int)pid);
    return open(path, O_RDONLY | O_CLOEXEC);
}

static bool hold(void)
{
    int ends[2];
    char ready;

    if (pipe(ends) < 0 || (holder = fork()) < 0)
        return false;
    if (holder == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (unshare(CLONE_NEWNET) == 0 && write(ends[1], "r", 1) == 1)
            for (;;)
                pause();
        _exit(1);
    }
    close(ends[1]);
    bool good = read(ends[0], &ready, 1) == 1;
    close(ends[0]);
    return good;
}

/* Two networks joined by a cable: 10.99.0.1 here, 10.99.0.2 there. */
static bool build(void)
{
    char command[200];

    if (unshare(CLONE_NEWNET) < 0 || !hold())
        return false;
    networks[0] = open_network(getpid());
    networks[1] = open_network(holder);
    snprintf(command, sizeof(command), "ip link add here type veth peer name there netns %d", (int)holder);
    if (networks[0] < 0 || networks[1] < 0 || !shell(command) ||
        !shell(
            "ip link set lo up && ip addr add 10.99.0.1/24 dev here && ip link set here up && iptables -L"))
        return false;
    bool good = setns(networks[1], CLONE_NEWNET) == 0 &&
                shell("ip link set lo up && ip addr add 10.99.0.2/24 dev there && ip link set there up");
    return setns(networks[0], CLONE_NEWNET) == 0 && good;
}

static void cut(bool yes)
{
    assert_true(shell(yes ? "iptables -A INPUT -i here -j DROP && iptables -A OUTPUT -o here -j DROP"
                          : "iptables -F"));
}

/* silence_ms: of a lost node. */
static void begin(struct crew *c, int64_t silence_ms)
{
    static char conf[80];

    crew_open(c, 2);
    c->at = "10.99.0.1";
    snprintf(conf, sizeof(conf), "keep_alive_interval=%g,keep_alive_max_attempt=%d",
             (double)silence_ms / 1000 / BEATS, BEATS);
    c->conf = conf;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(setns(networks[i], CLONE_NEWNET), 0);
        crew_start(c, i, RUN_ARGS("--nnodes=2", "--rdzv-id=x"),
                   "echo $MASTER_ADDR; touch up; while [ ! -e go ]; do sleep 0.01; done");
    }
    assert_int_equal(setns(networks[0], CLONE_NEWNET), 0);
    crew_wait_file(c, "up");
}

/* Shorter than it takes to be lost: nothing happens. False: this process or a launcher did not run meanwhile, and the cut took as long. */
static bool is_there_after_a_moment(int64_t silence_ms)
{
    const struct timespec moment = {.tv_sec = 1};
    struct crew c;
    int codes[2];

    begin(&c, silence_ms);
    cut(true);
    nanosleep(&moment, NULL);
    cut(false);
    crew_touch(&c, "go");
    for (int i = 0; i < 2; i++)
        codes[i] = crew_wait(&c, i);
    const bool lost =
        codes[0] == 140 && codes[1] == 140 && strstr(buf_str(&c.runs[0].err), "node 10.99.0.2 was lost");
    for (int i = 0; i < 2 && !lost; i++) {
        assert_int_equal(codes[i], 0);
        assert_string_equal(buf_str(&c.runs[i].out), "10.99.0.1\n");
    }
    crew_release(&c);
    return !lost;
}

static void test_for_a_moment(void **state)
{
    (void)state;
    patience_until(is_there_after_a_moment, 4000);
}

static void test_for_good(void **state)
{
    struct crew c;

    (void)state;
    begin(&c, 4000);
    cut(true);
    crew_expect(&c, 140);
    run_says(&c.runs[0].err, "node 10.99.0.2 was lost");
    run_says(&c.runs[1].err, "the node that hosts it was lost");
    cut(false);
    crew_release(&c);
}

/* Each has is_host=true: the one that the endpoint does not lead to ends, instead of starting a run of its own. */
static void test_two_hosts(void **state)
{
    struct crew c;

    (void)state;
    crew_open(&c, 2);
    c.at = "10.99.0.1";
    c.host = CREW_ALL;
    c.conf = "last_call_timeout=0.2";
    for (int i = 0; i < 2; i++) {
        assert_int_equal(setns(networks[i], CLONE_NEWNET), 0);
        crew_start(&c, i, RUN_ARGS("--nnodes=1:2", "--rdzv-id=x"),
                   "touch up; while [ ! -e go ]; do sleep 0.01; done");
        if (i == 0)
            assert_true(run_wait_file(&c.runs[0], "up"));
    }
    assert_int_equal(setns(networks[0], CLONE_NEWNET), 0);
    crew_expect_node(&c, 1, 138);
    run_says(&c.runs[1].err, "another launcher does so there");
    run_touch(&c.runs[0], "go");
    crew_expect_node(&c, 0, 0);
    crew_release(&c);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_for_a_moment),
        cmocka_unit_test(test_for_good),
        cmocka_unit_test(test_two_hosts),
    };

    int result = SKIPPED;
    if (build())
        result = run_main(argc, argv, tests, ARRAY_LEN(tests));
    else
        printf("skipped: needs root, ip, iptables and network namespaces\n");
    if (holder > 0) {
        kill(holder, SIGKILL);
        waitpid(holder, NULL, 0);
    }
    return result;
}
