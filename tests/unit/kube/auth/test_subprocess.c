/* test_subprocess.c - a program's whole life: output, error, end, too long, too much, and nothing left behind. */
#include "kube/auth/subprocess.h"

#include "../rig.h"
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

struct seen {
    bool over;
    enum subprocess_end end;
    int code;
    char output[200];
    size_t n_output;
    char tail[SUBPROCESS_TAIL_BYTES + 1];
};

static void on_done(void *ctx, struct subprocess *c)
{
    struct seen *s = ctx;

    assert_false(s->over);
    s->over = true;
    s->end = subprocess_end(c, &s->code);
    struct sv out = subprocess_output(c);
    s->n_output = out.len;
    snprintf(s->output, sizeof(s->output), "%.*s", (int)out.len, out.p);
    subprocess_tail(c, s->tail);
    subprocess_free(c);
}

static bool is_over(void *ctx)
{
    return ((struct seen *)ctx)->over;
}

/* No child of ours is left, dead or alive. */
static void assert_no_child(void)
{
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    assert_int_equal(errno, ECHILD);
}

static struct subprocess *start(struct kube_loop *l, const char *script, int64_t deadline_ms, size_t max,
                                struct seen *s, struct err *err)
{
    const char *const argv[] = {"sh", "-c", script, "name", "an argument", NULL};
    const char *const env[] = {"PATH=/usr/bin:/bin", "GREETING=hello", NULL};

    return subprocess_start(l,
                            &(struct subprocess_spec){.argv = argv,
                                                      .env = env,
                                                      .output_max_bytes = max,
                                                      .deadline_ms = deadline_ms,
                                                      .done = on_done,
                                                      .ctx = s},
                            err);
}

static struct seen run(const char *script, int64_t deadline_ms, size_t max)
{
    struct seen s = {0};
    struct err err;
    cleanup_kube_loop struct kube_loop *l = kube_loop_new(clock_system(), &err);

    if (!start(l, script, deadline_ms, max, &s, &err))
        fail_msg("%s", err.msg);
    rig_until(l, is_over, &s);
    assert_no_child();
    return s;
}

static void test_ends(void **ctx)
{
    struct seen s = run("echo \"$GREETING, $1\"; echo 'so   far' >&2; echo good >&2", 60000, 1000);

    (void)ctx;
    assert_int_equal(s.end, SUBPROCESS_EXITED);
    assert_int_equal(s.code, 0);
    assert_string_equal(s.output, "hello, an argument\n");
    assert_string_equal(s.tail, "so far good");
    s = run("exit 7", 60000, 1000);
    assert_int_equal(s.end, SUBPROCESS_EXITED);
    assert_int_equal(s.code, 7);
    s = run("kill -TERM $$", 60000, 1000);
    assert_int_equal(s.end, SUBPROCESS_KILLED);
    assert_int_equal(s.code, SIGTERM);
}

/* More than a pipe holds, in pieces; and standard error is kept at its end only. */
static void test_much(void **ctx)
{
    struct seen s = run("head -c 300000 /dev/zero", 60000, 300000);

    (void)ctx;
    assert_int_equal(s.end, SUBPROCESS_EXITED);
    assert_int_equal(s.n_output, 300000);
    s = run("head -c 300000 /dev/zero | tr '\\0' x >&2; echo ' the end' >&2; exit 1", 60000, 10);
    assert_int_equal(s.code, 1);
    assert_int_equal(strlen(s.tail), SUBPROCESS_TAIL_BYTES - 1);
    assert_non_null(strstr(s.tail, "xxx the end"));
    s = run("head -c 300001 /dev/zero; sleep 1000", 600000, 300000);
    assert_int_equal(s.end, SUBPROCESS_TOO_MUCH);
}

static void test_deadline(void **ctx)
{
    struct seen s = run("sleep 1000 & sleep 1000", 50, 1000);

    (void)ctx;
    assert_int_equal(s.end, SUBPROCESS_TOO_LATE);
}

/* Whatever it started dies with it: the pipe that both hold comes to its end. */
static void test_its_children_die_too(void **ctx)
{
    char dir[] = "/tmp/test_subprocess_XXXXXX";
    char fifo[64], script[200];

    (void)ctx;
    assert_non_null(mkdtemp(dir));
    snprintf(fifo, sizeof(fifo), "%s/fifo", dir);
    assert_int_equal(mkfifo(fifo, 0600), 0);
    int fd = open(fifo, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    assert_true(fd >= 0);
    snprintf(script, sizeof(script), "exec 9>%s; echo up >&9; sleep 1000 & head -c 20 /dev/zero; sleep 1000",
             fifo);
    struct seen s = run(script, 600000, 10);
    assert_int_equal(s.end, SUBPROCESS_TOO_MUCH);
    struct pollfd writers = {fd, 0, 0};
    assert_int_equal(poll(&writers, 1, 60000), 1);
    assert_int_equal(writers.revents, POLLHUP);
    char up[3];
    assert_int_equal(read(fd, up, sizeof(up)), 3); /* it had been open */
    close(fd);
    unlink(fifo);
    rmdir(dir);
}

/* Somebody else keeps the pipe open: its end is the end all the same, with all that it had written. */
static void test_left_behind(void **ctx)
{
    struct seen s = run("setsid sleep 5 & echo done", 60000, 1000);

    (void)ctx;
    assert_int_equal(s.end, SUBPROCESS_EXITED);
    assert_string_equal(s.output, "done\n");
}

static void test_nothing_of_ours(void **ctx)
{
    sigset_t blocked, before;

    (void)ctx;
    /* A blocked and an ignored signal, as in a process with a loop. */
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGTERM);
    sigprocmask(SIG_BLOCK, &blocked, &before);
    signal(SIGPIPE, SIG_IGN);
    struct seen s = run("cat; ls /proc/self/fd | tr '\\n' ' '; grep -E 'Sig(Blk|Ign)' /proc/self/status | "
                        "tr -d '\\n'; test $(ps -o pgid= $$ 2>/dev/null || cut -d' ' -f5 /proc/$$/stat) = $$ "
                        "&& echo own",
                        60000, 1000);
    signal(SIGPIPE, SIG_DFL);
    sigprocmask(SIG_SETMASK, &before, NULL);
    assert_int_equal(s.code, 0);
    assert_non_null(strstr(s.output, "0 1 2 3 ")); /* 3: the folder that ls reads */
    assert_null(strstr(s.output, " 4 "));
    assert_non_null(strstr(s.output, "SigBlk:\t0000000000000000SigIgn:\t"));
    /* The C library keeps 32 and 33 for itself. */
    assert_int_equal(strtoull(strstr(s.output, "SigIgn:\t") + 8, NULL, 16) & 0x7fffffff, 0);
    assert_non_null(strstr(s.output, "own"));
}

static void test_no_such_program(void **ctx)
{
    static const char *const names[] = {"no-such-program-here", "/nowhere/at/all", "/etc/passwd"};
    static const enum err_kind kinds[] = {ERR_NOT_FOUND, ERR_NOT_FOUND, ERR_FATAL};

    (void)ctx;
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        const char *const argv[] = {names[i], NULL};
        const char *const env[] = {NULL};
        struct seen s = {0};
        struct err err;
        cleanup_kube_loop struct kube_loop *l = kube_loop_new(clock_system(), &err);
        assert_null(subprocess_start(
            l,
            &(struct subprocess_spec){.argv = argv, .env = env, .deadline_ms = 1, .done = on_done, .ctx = &s},
            &err));
        assert_int_equal(err.kind, kinds[i]);
        assert_non_null(strstr(err.msg, names[i]));
        assert_no_child();
    }
}

static void test_freed_while_it_runs(void **ctx)
{
    struct seen s = {0};
    struct err err;
    cleanup_kube_loop struct kube_loop *l = kube_loop_new(clock_system(), &err);
    struct subprocess *c = start(l, "sleep 1000", 60000, 10, &s, &err);

    (void)ctx;
    assert_non_null(c);
    subprocess_free(c);
    assert_no_child();
    assert_int_equal(kube_loop_turn(l, 0, &err), 0);
    assert_false(s.over);
}

/* Started by something that ignores SIGCHLD: children vanish without a word. */
static void test_somebody_else_waits(void **ctx)
{
    struct seen s = {0};
    struct err err;
    cleanup_kube_loop struct kube_loop *l = kube_loop_new(clock_system(), &err);

    (void)ctx;
    signal(SIGCHLD, SIG_IGN);
    if (!start(l, "sleep 0.1; echo done", 60000, 100, &s, &err))
        fail_msg("%s", err.msg);
    rig_until(l, is_over, &s);
    signal(SIGCHLD, SIG_DFL);
    assert_int_equal(s.end, SUBPROCESS_LOST);
    assert_string_equal(s.output, "done\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ends),
        cmocka_unit_test(test_much),
        cmocka_unit_test(test_deadline),
        cmocka_unit_test(test_its_children_die_too),
        cmocka_unit_test(test_left_behind),
        cmocka_unit_test(test_nothing_of_ours),
        cmocka_unit_test(test_no_such_program),
        cmocka_unit_test(test_freed_while_it_runs),
        cmocka_unit_test(test_somebody_else_waits),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
