/* test_nodes.c - several launchers on one machine: how they meet, how runs end, and what each exits with. */
#include "common/cleanup.h"
#include "crew.h"
#include "patience.h"
#include "ports.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static void test_ranks_of_nodes_of_different_sizes(void **state)
{
    static const char *const nproc[] = {"--nproc-per-node=3", "--nproc-per-node=1", "--nproc-per-node=2"};
    struct crew c;
    char seen[6] = "", want[80];

    (void)state;
    crew_open(&c, 3);
    for (int i = 0; i < 3; i++)
        crew_start(&c, i, RUN_ARGS(nproc[i], "--nnodes=3"),
                   "if [ $RANK = 0 ]; then " RUN_PORT_IS_HELD "fi; "
                   "echo rank $RANK of $WORLD_SIZE node $GROUP_RANK of $GROUP_WORLD_SIZE at "
                   "$MASTER_ADDR:$MASTER_PORT");
    crew_expect(&c, 0);
    const char *at = strstr(buf_str(&c.runs[0].out), " at ");
    assert_non_null(at);
    for (int i = 0; i < 3; i++) {
        for (const char *p = buf_str(&c.runs[i].out); (p = strstr(p, "rank ")) != NULL; p += 5)
            seen[p[5] - '0']++;
        run_says(&c.runs[i].out, " of 6 node ");
        snprintf(want, sizeof(want), "%.*s", (int)strcspn(at, "\n"), at);
        run_says(&c.runs[i].out, want); /* one master for all */
    }
    assert_memory_equal(seen, "\1\1\1\1\1\1", 6);
    snprintf(want, sizeof(want), "at 127.0.0.1:%d", c.port);
    assert_null(strstr(buf_str(&c.runs[0].out), want));
    crew_release(&c);
}

/* Static: --node-rank numbers them, and ROLE_RANK counts over the nodes of the same --role. */
static void test_static_nodes_and_roles(void **state)
{
    static const struct {
        const char *role, *nproc, *rank, *want;
    } nodes[] = {{"--role=a", "--nproc-per-node=2", "--node-rank=0", "rank 1 of 4 is 1 of 3 a"},
                 {"--role=b", "--nproc-per-node=1", "--node-rank=1", "rank 2 of 4 is 0 of 1 b"},
                 {"--role=a", "--nproc-per-node=1", "--node-rank=2", "rank 3 of 4 is 2 of 3 a"}};
    struct crew c;

    (void)state;
    crew_open(&c, 3);
    c.is_static = true;
    for (int i = 2; i >= 0; i--)
        crew_start(
            &c, i, RUN_ARGS(nodes[i].role, nodes[i].nproc, nodes[i].rank, "--nnodes=3"),
            "echo rank $RANK of $WORLD_SIZE is $ROLE_RANK of $ROLE_WORLD_SIZE $ROLE_NAME at $MASTER_PORT");
    crew_expect(&c, 0);
    for (int i = 0; i < 3; i++) {
        char want[64];
        snprintf(want, sizeof(want), "%s at %d\n", nodes[i].want, c.port + 1);
        run_says(&c.runs[i].out, want);
    }
    crew_release(&c);
}

/* The node at fault exits as its rank did, the other with 140; both name the rank. */
static void test_root_cause_of_another_node(void **state)
{
    static const struct {
        const char *script, *says;
        int exitcode, code;
    } cases[] = {
        {"[ $NODE = 1 ] && exit 7; sleep 1000", "", 7, 7},
        {"[ $NODE = 1 ] && exit 255; sleep 1000", "", 255, 255},
        {"[ $NODE = 1 ] && kill -9 $$; sleep 1000", "", -9, 137},
        {"[ $NODE = 1 ] && kill -TERM $$; sleep 1000", "", -15, 143},
        /* who only lost a peer is not to blame, though it was first */
        {"[ $NODE = 0 ] && { echo $$ >$SHARED/p; mv $SHARED/p $SHARED/pid; exit 140; }; "
         "until [ -e $SHARED/pid ]; do sleep 0.01; done; read first <$SHARED/pid; "
         "while kill -0 $first; do :; done; exit 9",
         "", 9, 9},
        {"[ $NODE = 1 ] && exit 140; sleep 1000", "", 140, 140},
        {"[ $NODE = 1 ] && { echo '{\"message\": \"no such table\"}' >$TORCHELASTIC_ERROR_FILE; exit 3; }; "
         "sleep 1000",
         "traceback : no such table", 3, 3},
        /* who only lost a peer, and says so before it ends */
        {"[ $NODE = 0 ] && { echo '{\"message\": {\"message\": \"rank 1 went away\", \"errorCode\": 140}}' "
         ">e; "
         "mv e $TORCHELASTIC_ERROR_FILE; touch $SHARED/left; sleep 1000; }; "
         "until [ -e $SHARED/left ]; do sleep 0.01; done; exit 140",
         "", 140, 140},
    };

    (void)state;
    for (size_t i = 0, tries = 0; i < ARRAY_LEN(cases); i++) {
        struct crew c;
        int codes[2];
        crew_open(&c, 2);
        crew_start_all(&c, RUN_ARGS("--nnodes=2"), cases[i].script);
        for (int node = 0; node < 2; node++)
            codes[node] = crew_wait(&c, node);
        /* The leader waits for the cause for a second, in which a rank of a busy machine may not run. */
        const bool late = cases[i].code == 9 && codes[0] == 140 && codes[1] == 140 && ++tries < 5;
        for (int node = 0; node < 2 && !late; node++) {
            assert_int_equal(codes[node], node ? cases[i].code : 140);
            run_blames(&c.runs[node], 1, cases[i].exitcode, cases[i].says);
        }
        crew_release(&c);
        i -= late;
    }
}

static void test_restarts_are_counted_over_all_nodes(void **state)
{
    struct crew c;

    (void)state;
    crew_open(&c, 2);
    crew_start_all(
        &c, RUN_ARGS("--nnodes=2", "--max-restarts=2"),
        "touch try$TORCHELASTIC_RESTART_COUNT $SHARED/$NODE$TORCHELASTIC_RESTART_COUNT; "
        "case $NODE$TORCHELASTIC_RESTART_COUNT in "
        "00) until [ -e $SHARED/10 ]; do sleep 0.01; done; exit 5 ;; "
        "11) until [ -e $SHARED/01 ]; do sleep 0.01; done; exit 5 ;; *2) exit 0 ;; esac; sleep 1000");
    for (int i = 0; i < 2; i++) {
        crew_expect_node(&c, i, 0);
        assert_true(run_has_file(&c.runs[i], "try0") && run_has_file(&c.runs[i], "try1") &&
                    run_has_file(&c.runs[i], "try2"));
        run_says(&c.runs[i].err, "restart 2 of 2");
    }
    crew_release(&c);
    /* A node whose ranks are done takes part again. */
    crew_open(&c, 2);
    crew_start_all(&c, RUN_ARGS("--nnodes=2", "--max-restarts=1"),
                   "echo try >>tries; [ $NODE$TORCHELASTIC_RESTART_COUNT != 10 ] || { sleep 0.3; exit 5; }");
    crew_end(&c, 0);
}

static void test_sigterm_at_one_node(void **state)
{
    (void)state;
    for (int victim = 0; victim < 2; victim++) {
        struct crew c;
        crew_open(&c, 2);
        crew_start_all(&c, RUN_ARGS("--nnodes=2", "--max-restarts=3"),
                       "trap 'sleep 0.2; touch saved; exit 3' TERM; sleep 1000 & touch up; wait");
        crew_wait_file(&c, "up");
        kill(c.runs[victim].pid, SIGTERM);
        crew_expect_node(&c, victim, 143);
        crew_expect_node(&c, !victim, 140);
        run_says(&c.runs[!victim].err, "was stopped by signal 15");
        for (int i = 0; i < 2; i++)
            assert_true(run_has_file(&c.runs[i], "saved"));
        crew_release(&c);
    }
}

/* Start a node that gives up after some seconds: 1 at first, and more until its message is `want` with that number behind it. */
static void expect_give_up(struct crew *c, int node, const char *nnodes, const char *want)
{
    char conf[32], text[80];
    bool said = false;

    for (int64_t ms = 1000;; ms = patience_grow(ms)) {
        snprintf(conf, sizeof(conf), "join_timeout=%d", (int)(ms / 1000));
        snprintf(text, sizeof(text), "%s %d s", want, (int)(ms / 1000));
        c->conf = conf;
        crew_start(c, node, RUN_ARGS(nnodes), "true");
        crew_expect_node(c, node, 138);
        const char *err = buf_str(&c->runs[node].err);
        said = strstr(err, text);
        if (said)
            break;
        if (!strstr(err, " within ")) /* what else it did not reach in that time */
            fail_msg("expected \"%s\" in: %s", text, err);
        run_release(&c->runs[node]);
    }
    c->conf = NULL;
}

static void test_too_few_nodes(void **state)
{
    struct crew c;

    (void)state;
    crew_open(&c, 2);
    expect_give_up(&c, 0, "--nnodes=2", "1 of at least 2 nodes came within");
    expect_give_up(&c, 1, "--nnodes=2", "not reached within"); /* nobody hosts */
    crew_release(&c);
    /* One more than there is room for. */
    crew_open(&c, 3);
    for (int i = 0; i < 2; i++)
        crew_start(&c, i, RUN_ARGS("--nnodes=1:2"),
                   "touch world$WORLD_SIZE; while [ ! -e go ]; do sleep 0.01; done");
    assert_true(run_wait_file(&c.runs[0], "world2"));
    expect_give_up(&c, 2, "--nnodes=1:2", "no place became free within");
    crew_touch(&c, "go");
    for (int i = 0; i < 2; i++)
        crew_expect_node(&c, i, 0);
    crew_release(&c);
}

/* The resolver's own words, after 5 s and at the end. False: it gave up before it reported that it waits. */
static bool name_does_not_resolve(int64_t ms)
{
    char conf[32], text[64];
    struct crew c;
    int waited_s = 0;

    crew_open(&c, 2);
    c.at = "no-such-host.invalid";
    snprintf(conf, sizeof(conf), "join_timeout=%d", (int)(ms / 1000));
    snprintf(text, sizeof(text), "not reached within %d s", (int)(ms / 1000));
    c.conf = conf;
    crew_start(&c, 1, RUN_ARGS("--nnodes=2", "--rdzv-id=x"), "true");
    crew_expect_node(&c, 1, 138);
    const char *said = buf_str(&c.runs[1].err), *end = strstr(said, text);
    const char *waits = strstr(said, "waiting for the node that hosts it for ");
    assert_non_null(end);
    if (waits)
        assert_int_equal(sscanf(waits, "waiting for the node that hosts it for %d s", &waited_s), 1);
    for (int i = waits ? 0 : 1; i < 2; i++, said = end)
        if (!strstr(said, "while trying to connect: Name or service not known") &&
            !strstr(said, "while trying to connect: Name does not resolve") && /* musl */
            !strstr(said, "while trying to connect: T") && /* Temporary failure, Try again: no name server */
            !strstr(said, "while trying to connect: no name server has answered"))
            fail_msg("%s", said);
    crew_release(&c);
    assert_true(!waits || waited_s >= 5);
    return waits;
}

static void test_a_name_that_does_not_resolve(void **state)
{
    (void)state;
    patience_until(name_does_not_resolve, 6000);
}

/* Two have the places of a run of two nodes; the third trained nothing, which is no success. False: it came when the run was over,
 * although they waited so long for it. */
static bool node_is_too_many(int64_t rest_ms)
{
    struct crew c;
    char conf[32];

    crew_open(&c, 3);
    c.host = 0;
    for (int i = 0; i < 2; i++)
        crew_start(&c, i, RUN_ARGS("--nnodes=2"), "touch up; while [ ! -e go ]; do sleep 0.01; done");
    for (int i = 0; i < 2; i++)
        assert_true(run_wait_file(&c.runs[i], "up"));
    snprintf(conf, sizeof(conf), "join_timeout=%d", (int)rest_ms / 10);
    c.conf = conf;
    crew_start(&c, 2, RUN_ARGS("--nnodes=2"), "true");
    while (ports_connections(c.port) < 2)
        usleep(10000);
    usleep((useconds_t)rest_ms * 1000);
    for (int i = 0; i < 2; i++)
        run_touch(&c.runs[i], "go");
    const int code = crew_wait(&c, 2);
    assert_true(code == 1 || code == 138);
    assert_true(code == 138 || strstr(buf_str(&c.runs[2].err), "has ended well without this node"));
    for (int i = 0; i < 2; i++)
        crew_expect_node(&c, i, 0);
    crew_release(&c);
    return code == 1;
}

static void test_a_node_too_many(void **state)
{
    (void)state;
    patience_until(node_is_too_many, 200);
}

#define KEY "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"

/* Ranks find it in no environment, not even the launcher's. */
static void test_the_key_of_the_job(void **state)
{
    struct crew c;

    (void)state;
    crew_open(&c, 2);
    setenv("TORCHKEEPER_JOB_KEY", KEY, 1);
    crew_start_all(&c, RUN_ARGS("--nnodes=2"),
                   "tr '\\0' '\\n' </proc/$PPID/environ >launcher; env >rank; "
                   "cat launcher rank | grep -c 00112233; grep -c TORCHKEEPER_KEY_FILE= rank");
    unsetenv("TORCHKEEPER_JOB_KEY");
    for (int i = 0; i < 2; i++) {
        crew_expect_node(&c, i, 0);
        assert_string_equal(buf_str(&c.runs[i].out), "0\n1\n");
    }
    crew_release(&c);
}

static bool forbid_memory_files(void)
{
    struct sock_filter lines[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_memfd_create, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog program = {.len = ARRAY_LEN(lines), .filter = lines};

    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) == 0;
}

/* The launcher's message and exit code where memory files are forbidden. */
static int run_without_memory_files(const char *key, char said[static 1024])
{
    int fds[2], status;
    size_t len = 0;

    assert_int_equal(pipe(fds), 0);
    const pid_t pid = fork();
    if (pid == 0) {
        if (!forbid_memory_files() || setenv("TORCHKEEPER_JOB_KEY", key, 1) < 0 || dup2(fds[1], 2) < 0)
            _exit(77);
        execl(run_torchrun, "torchrun", "--no-python", "/bin/true", (char *)NULL);
        _exit(76);
    }
    close(fds[1]);
    for (ssize_t n; len < 1023 && (n = read(fds[0], said + len, 1023 - len)) > 0;)
        len += (size_t)n;
    said[len] = '\0';
    close(fds[0]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* Ranks that had none would take whoever knows the run id. Without a key the ranks do without the launcher's memory. */
static void test_a_key_that_cannot_be_kept(void **state)
{
    char said[1024];

    (void)state;
    const int code = run_without_memory_files(KEY, said);
    if (code == 77)
        skip(); /* no seccomp filters here */
    assert_int_equal(code, 1);
    assert_non_null(strstr(said, "cannot keep the key of the job"));
    assert_non_null(strstr(said, "Operation not permitted"));
    assert_int_equal(run_without_memory_files("", said), 0);
    assert_string_equal(said, "");
}

static void test_a_signal_ends_the_wait(void **state)
{
    struct crew c;

    (void)state;
    crew_open(&c, 2);
    for (int i = 0; i < 2; i++) { /* for the others; for the leader */
        crew_start(&c, i, RUN_ARGS("--nnodes=3"), "true");
        run_wait_threads(&c.runs[i]);
        kill(c.runs[i].pid, SIGTERM);
        crew_expect_node(&c, i, 143);
    }
    crew_release(&c);
}

/* The last attempt's leader is still there: that is waited out. The first run ends after a signal. */
static void test_another_run_at_the_endpoint(void **state)
{
    struct crew c;

    (void)state;
    crew_open(&c, 4);
    c.host = CREW_AUTO;
    for (int i = 0; i < 2; i++)
        crew_start(&c, i, RUN_ARGS("--nnodes=2", "--rdzv-id=old"),
                   "touch up; while [ ! -e go ]; do sleep 0.01; done");
    crew_wait_file(&c, "up");
    for (int i = 2; i < 4; i++)
        crew_start(&c, i, RUN_ARGS("--nnodes=2", "--rdzv-id=new"), "echo $WORLD_SIZE");
    crew_touch(&c, "go"); /* those of the old run look for it, and the new ones' ranks do not */
    crew_expect(&c, 0);
    assert_string_equal(buf_str(&c.runs[3].out), "2\n");
    crew_release(&c);
}

static void test_a_program_that_is_missing_on_one_node(void **state)
{
    struct crew c;

    (void)state;
    crew_open(&c, 2);
    crew_start(&c, 0, RUN_ARGS("--nnodes=2", "--max-restarts=3"), "sleep 1000");
    crew_start(&c, 1, RUN_ARGS("--nnodes=2", "--max-restarts=3", "./no-such-program"), NULL);
    crew_expect_node(&c, 1, 1);
    crew_expect_node(&c, 0, 140);
    run_says(&c.runs[0].err, "no-such-program");
    crew_release(&c);
}

/* Node i has given up joining: whatever runs is ended. */
static void gave_up(struct crew *c, int i)
{
    crew_expect_node(c, i, 138);
    run_says(&c->runs[i].err, " within ");
    for (int k = 0; k < c->n; k++)
        if (k != i && c->started[k] && waitpid(c->runs[k].pid, NULL, WNOHANG) == 0) {
            kill(c->runs[k].pid, SIGKILL);
            (void)crew_wait(c, k);
        }
    crew_release(c);
}

/* Ranks take longer to stop than the last call lasts: each round has all nodes all the same. Long after join_timeout those that
 * joined while a round ran are nodes like any other. False: one gave up joining. */
static bool nodes_come_and_go(int64_t join_ms)
{
    static const char script[] = "trap 'sleep 0.3; exit 0' TERM; touch world$WORLD_SIZE; "
                                 "echo $TORCHELASTIC_RESTART_COUNT; while [ ! -e go ]; do sleep 0.01; done";
    struct crew c;
    char conf[32];

    crew_open(&c, 4);
    c.conf = "last_call_timeout=0.05";
    for (int i = 0; i < 2; i++)
        crew_start(&c, i, RUN_ARGS("--nnodes=1:3"), script);
    crew_wait_file(&c, "world2");
    snprintf(conf, sizeof(conf), "join_timeout=%d", (int)(join_ms / 1000));
    c.conf = conf;
    crew_start(&c, 2, RUN_ARGS("--nnodes=1:3"), script);
    if (!run_wait_file(&c.runs[2], "world3")) {
        gave_up(&c, 2);
        return false;
    }
    crew_wait_file(&c, "world3");
    run_remove(&c.runs[0], "world2");
    kill(c.runs[1].pid, SIGTERM);
    crew_expect_node(&c, 1, 143);
    assert_true(run_wait_file(&c.runs[0], "world2") && run_wait_file(&c.runs[2], "world2"));
    run_remove(&c.runs[0], "world3");
    crew_start(&c, 3, RUN_ARGS("--nnodes=1:3"), script);
    if (!run_wait_file(&c.runs[3], "world3")) {
        gave_up(&c, 3);
        return false;
    }
    assert_true(run_wait_file(&c.runs[0], "world3"));
    usleep((useconds_t)join_ms * 1000 + 100000);
    crew_touch(&c, "go");
    for (int i = 0; i < 4; i += i == 0 ? 2 : 1) {
        crew_expect_node(&c, i, 0);
        assert_null(strstr(buf_str(&c.runs[i].out), "1")); /* no restart was used */
    }
    crew_release(&c);
    return true;
}

static void test_nodes_come_and_go(void **state)
{
    (void)state;
    patience_until(nodes_come_and_go, 3000);
}

/* Logs, prefixes and orphans belong to each node, and begin again in each round. */
static void test_output_and_orphans_of_each_node(void **state)
{
    struct crew c;

    (void)state;
    crew_open(&c, 2);
    crew_start_all(
        &c, RUN_ARGS("--nnodes=2", "--nproc-per-node=2", "--log-dir=logs", "-t", "3", "--max-restarts=1"),
        "echo $TORCHELASTIC_RESTART_COUNT.$RANK; setsid sleep 1000 & echo $! >o$RANK; mv o$RANK orphan$RANK; "
        "[ $TORCHELASTIC_RESTART_COUNT = 1 ] && exit; touch $SHARED/$RANK; [ $RANK = 0 ] || exec sleep 1000; "
        "for other in 1 2 3; do until [ -e $SHARED/$other ]; do sleep 0.01; done; done; exit 3");
    for (int i = 0; i < 2; i++) {
        char want[64], name[16];
        crew_expect_node(&c, i, 0);
        for (int rank = 2 * i; rank < 2 * i + 2; rank++) {
            snprintf(want, sizeof(want), "[default%d]:1.%d\n", rank - 2 * i, rank);
            run_says(&c.runs[i].out, want);
            snprintf(name, sizeof(name), "orphan%d", rank);
            assert_true(run_gone(run_read_number(&c.runs[i], name))); /* although all ended well */
        }
        snprintf(want, sizeof(want), "0.%d\n", 2 * i);
        run_expect_file(&c.runs[i], "logs/*/attempt_0/0/stdout.log", want);
        snprintf(want, sizeof(want), "1.%d\n", 2 * i + 1);
        run_expect_file(&c.runs[i], "logs/*/attempt_1/1/stdout.log", want);
    }
    crew_release(&c);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ranks_of_nodes_of_different_sizes),
        cmocka_unit_test(test_static_nodes_and_roles),
        cmocka_unit_test(test_root_cause_of_another_node),
        cmocka_unit_test(test_restarts_are_counted_over_all_nodes),
        cmocka_unit_test(test_sigterm_at_one_node),
        cmocka_unit_test(test_too_few_nodes),
        cmocka_unit_test(test_a_name_that_does_not_resolve),
        cmocka_unit_test(test_a_node_too_many),
        cmocka_unit_test(test_the_key_of_the_job),
        cmocka_unit_test(test_a_key_that_cannot_be_kept),
        cmocka_unit_test(test_a_signal_ends_the_wait),
        cmocka_unit_test(test_another_run_at_the_endpoint),
        cmocka_unit_test(test_a_program_that_is_missing_on_one_node),
        cmocka_unit_test(test_nodes_come_and_go),
        cmocka_unit_test(test_output_and_orphans_of_each_node),
    };
    return run_main(argc, argv, tests, ARRAY_LEN(tests));
}
