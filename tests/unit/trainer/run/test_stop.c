/* test_stop.c - when a trainer hears SIGTERM and SIGINT: before it has met its peers, while it trains, and after. */
#include "test.h"

#include "collectives/collectives.h"
#include "common/cleanup.h"
#include "common/fsutil.h"
#include "launcher/run.h"
#include "ports.h"
#include "signals.h"
#include "trainer/data/http_server.h"
#include "trainer/run/stop.h"
#include "trainer/small_data.h"

#include <dirent.h>
#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>

enum { POLLS_MAX = 100000 }; /* of 2 ms each */

static char *trainer;

/* A trainer has no socket before it meets its peers. */
static bool has_socket(pid_t pid)
{
    char path[320], link[32];
    bool found = false;

    snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
    cleanup_closedir DIR *dir = opendir(path);
    for (struct dirent *e; dir && !found && (e = readdir(dir));) {
        snprintf(path, sizeof(path), "/proc/%d/fd/%s", (int)pid, e->d_name);
        ssize_t n = readlink(path, link, sizeof(link));
        found = n > 7 && memcmp(link, "socket:", 7) == 0;
    }
    return found;
}

static void wait_for_socket(pid_t pid)
{
    const struct timespec tick = {.tv_nsec = 2000000};
    siginfo_t info = {0};

    for (int i = 0; i < POLLS_MAX && !has_socket(pid); i++) {
        assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT), 0);
        if (info.si_pid)
            fail_msg("the trainer has ended by itself");
        nanosleep(&tick, NULL);
    }
    assert_true(has_socket(pid));
}

/* Rank 1 of 2, alone. Returns when it is the trainer: a fork has this process's sockets and signals until then. */
static pid_t start_lonely(void)
{
    char id[32], port[16];
    int until_exec[2];

    snprintf(id, sizeof(id), "stop-%d", (int)getpid());
    snprintf(port, sizeof(port), "%d", ports_take());
    assert_int_equal(pipe2(until_exec, O_CLOEXEC), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid) {
        close(until_exec[1]);
        assert_int_equal(read(until_exec[0], id, 1), 0);
        close(until_exec[0]);
        return pid;
    }
    signals_default();
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    setenv("RANK", "1", 1);
    setenv("WORLD_SIZE", "2", 1);
    setenv("LOCAL_RANK", "1", 1);
    setenv("LOCAL_WORLD_SIZE", "2", 1);
    setenv("MASTER_ADDR", "127.0.0.1", 1);
    setenv("MASTER_PORT", port, 1);
    setenv("TORCHELASTIC_RUN_ID", id, 1);
    execl(trainer, trainer, "mnist-cnn", "--timeout", "1000", (char *)NULL);
    _exit(120);
}

static void a_rank_without_peers_can_be_stopped(void **state)
{
    const int signals[] = {SIGTERM, SIGINT};
    int status;

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        pid_t pid = start_lonely();
        wait_for_socket(pid);
        kill(pid, signals[i]);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFSIGNALED(status));
        assert_int_equal(WTERMSIG(status), signals[i]);
    }
}

/* Rank 0 fails when rank 1 waits for it: the launcher's SIGTERM is enough, long before --shutdown-timeout. */
static void a_rank_that_never_comes_costs_nobody_the_timeout(void **state)
{
    struct run r;

    (void)state;
    setenv("TRAINER", trainer, 1);
    assert_int_equal(
        run_once(RUN_ARGS("--nproc-per-node=2", "--shutdown-timeout=1000"),
                 "if [ $RANK = 1 ]; then echo $$ >pid; exec \"$TRAINER\" mnist-cnn --timeout 1000; fi; "
                 "until ls -l /proc/$(cat pid)/fd | grep -q 'socket:'; do sleep 0.01; done 2>/dev/null; "
                 "exit 3",
                 &r),
        3);
    assert_non_null(strstr(buf_str(&r.err), "FAILED"));
    run_release(&r);
}

/* A signal that comes after the end of the run changes nothing. */
static void a_signal_after_the_last_step_is_no_death(void **state)
{
    const int signals[] = {SIGTERM, SIGINT};
    const uint32_t flags[] = {COLLECTIVES_STOP_TERM, COLLECTIVES_STOP_INT};
    int status;

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        pid_t pid = fork();
        if (pid == 0) {
            struct stop stop;
            struct err err;
            if (stop_open(&stop, &err))
                _exit(1);
            raise(signals[i]);
            stop_close(&stop);
            _exit(stop.flags == flags[i] ? 0 : 2);
        }
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 0);
    }
}

/* What was before is again: the default action. */
static void signals_are_as_before_when_closed(void **state)
{
    int status;

    (void)state;
    pid_t pid = fork();
    if (pid == 0) {
        struct stop stop;
        struct err err;
        signals_default();
        if (stop_open(&stop, &err))
            _exit(1);
        stop_close(&stop);
        raise(SIGTERM);
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGTERM);
}

/* A download can take long: it is left at once, and nobody is to try it again. */
static void a_download_can_be_stopped(void **state)
{
    const struct timespec tick = {.tv_nsec = 2000000};
    struct http_server server;
    char folder[SMALL_DATA_DIR_BYTES] = "/tmp/test_stop_XXXXXX";
    char proxy[64];
    int status;

    (void)state;
    http_server_start(&server);
    assert_non_null(mkdtemp(folder));
    snprintf(proxy, sizeof(proxy), "http://127.0.0.1:%d", server.port);
    strcpy(server.seen->proxied, "/stall");
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (!pid) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        setenv("http_proxy", proxy, 1);
        execl(trainer, trainer, "mnist-cnn", "--data", folder, "--dataset", "fashion-mnist", (char *)NULL);
        _exit(120);
    }
    for (int i = 0; i < POLLS_MAX && !server.seen->requests; i++)
        nanosleep(&tick, NULL);
    assert_int_equal(server.seen->requests, 1);
    kill(pid, SIGTERM);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 143);
    http_server_stop(&server);
    small_data_remove(folder);
}

/* ---- a training under the launcher ---- */

static const char MODEL[] = "name: tiny\n"
                            "model:\n"
                            "  input: {rows: 8, cols: 8, channels: 1}\n"
                            "  layers: [flatten, {type: linear, name: out, out: 10}]\n"
                            "loss: cross_entropy\n"
                            "optimizer: {type: adam, lr: 0.01}\n"
                            "data: {format: idx, train_items: 64, val_items: 0}\n"
                            "defaults: {epochs: 1000000, batch_size: 4, log_interval: 1000000}\n";

static void wait_for_checkpoint(const char *dir, const struct run *r)
{
    const struct timespec tick = {.tv_nsec = 2000000};
    char pattern[160];
    glob_t found;

    snprintf(pattern, sizeof(pattern), "%s/ck/*/step-*", dir);
    for (int i = 0; glob(pattern, 0, NULL, &found) != 0; i++) {
        if (i == POLLS_MAX || !run_runs(r))
            fail_msg("%s never came%s", pattern, run_runs(r) ? "" : ": the launcher has ended by itself");
        nanosleep(&tick, NULL);
    }
    globfree(&found);
}

enum whom { LAUNCHER, LAUNCHER_TWICE, RANK_1, ALL_RANKS, WHOM_COUNT };

static void send_stop(const struct run *r, enum whom whom)
{
    if (whom == LAUNCHER || whom == LAUNCHER_TWICE)
        kill(r->pid, SIGTERM);
    if (whom == LAUNCHER_TWICE)
        kill(r->pid, SIGTERM);
    if (whom == ALL_RANKS)
        kill(run_read_number(r, "pid.0"), SIGTERM);
    if (whom == RANK_1 || whom == ALL_RANKS)
        kill(run_read_number(r, "pid.1"), SIGTERM);
}

/* Whoever gets SIGTERM: 143, a checkpoint, and the next start continues from it. */
static void a_stopped_job_goes_on_from_its_checkpoint(void **state)
{
    char dir[SMALL_DATA_DIR_BYTES];
    char model[SMALL_DATA_DIR_BYTES + 16];
    struct err err;
    struct run r;

    (void)state;
    for (enum whom whom = 0; whom < WHOM_COUNT; whom++) {
        small_data_make(dir);
        snprintf(model, sizeof(model), "%s/tiny.yaml", dir);
        assert_int_equal(fs_write_atomic(model, MODEL, strlen(MODEL), &err), 0);
        setenv("TRAINER", trainer, 1);
        setenv("WHERE", dir, 1);
        setenv("PTJ_JOB_UID", "one-job", 1);
        setenv("EVERY", whom == ALL_RANKS ? "1" : "50", 1); /* 1: the step that stops is saved already. */
        run_start(&r, RUN_ARGS("--nproc-per-node=2"),
                  "echo $$ >pid.$RANK; exec \"$TRAINER\" $WHERE/tiny.yaml --data $WHERE --ckpt_dir $WHERE/ck "
                  "--save_steps $EVERY --timeout 600");
        wait_for_checkpoint(dir, &r);
        send_stop(&r, whom);
        int code = run_wait(&r);
        if (code != 143 || !strstr(buf_str(&r.out), "checkpoint of step "))
            fail_msg("case %d: exit %d\n%s%s", (int)whom, code, buf_str(&r.out), buf_str(&r.err));
        run_release(&r);
        run_start(&r, RUN_ARGS("--nproc-per-node=2"),
                  "exec \"$TRAINER\" $WHERE/tiny.yaml --data $WHERE --ckpt_dir $WHERE/ck --max_steps 1 "
                  "--timeout 600");
        code = run_wait(&r);
        if (code != 0 || !strstr(buf_str(&r.out), "resumed from ") || strstr(buf_str(&r.out), "damaged"))
            fail_msg("case %d: exit %d\n%s%s", (int)whom, code, buf_str(&r.out), buf_str(&r.err));
        run_release(&r);
        small_data_remove(dir);
        unsetenv("PTJ_JOB_UID");
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_rank_without_peers_can_be_stopped),
        cmocka_unit_test(a_rank_that_never_comes_costs_nobody_the_timeout),
        cmocka_unit_test(a_signal_after_the_last_step_is_no_death),
        cmocka_unit_test(signals_are_as_before_when_closed),
        cmocka_unit_test(a_download_can_be_stopped),
        cmocka_unit_test(a_stopped_job_goes_on_from_its_checkpoint),
    };
    if (argc != 3 || !(trainer = realpath(argv[1], NULL)) || !(run_torchrun = realpath(argv[2], NULL)))
        return 2;
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    free(trainer);
    free(run_torchrun);
    return failed;
}
