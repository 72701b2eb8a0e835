/* test_stop.c - when a trainer hears SIGTERM and SIGINT: before it has met its peers, while it trains, and after. */
#include "test.h"

#include "common/cleanup.h"
#include "launcher/run.h"
#include "trainer/collectives/collectives.h"
#include "trainer/stop.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>

enum { POLLS_MAX = 30000 };

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

/* Rank 1 of 2, alone. */
static pid_t start_lonely(void)
{
    char id[32];

    snprintf(id, sizeof(id), "stop-%d", (int)getpid());
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    setenv("RANK", "1", 1);
    setenv("WORLD_SIZE", "2", 1);
    setenv("LOCAL_RANK", "1", 1);
    setenv("LOCAL_WORLD_SIZE", "2", 1);
    setenv("MASTER_ADDR", "127.0.0.1", 1);
    setenv("MASTER_PORT", "29512", 1);
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

/* A signal that nobody has asked for any more came too late: what is finished is finished. */
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

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_rank_without_peers_can_be_stopped),
        cmocka_unit_test(a_rank_that_never_comes_costs_nobody_the_timeout),
        cmocka_unit_test(a_signal_after_the_last_step_is_no_death),
        cmocka_unit_test(signals_are_as_before_when_closed),
    };
    if (argc != 3 || !(trainer = realpath(argv[1], NULL)) || !(run_torchrun = realpath(argv[2], NULL)))
        return 2;
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    free(trainer);
    free(run_torchrun);
    return failed;
}
