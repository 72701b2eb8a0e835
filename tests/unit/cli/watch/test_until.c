/* test_until.c - kubectl ptj watch --until: how it ends for each end of a job, and that it outlives a lost API server.
 *
 * usage: test_until <kubectl-ptj>
 */
#include "test.h"

#include "onpty.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

#define FINISHED "--until=finished"
#define RUNNING "--until=running"

enum { COLUMNS = 100, ROWS = 12 };

static void test_ended_before(void **state)
{
    struct ptj *p = *state;

    ptj_put_job(p, "ok", "{}", "{\"phase\":\"Succeeded\"}");
    ptj_put_job(p, "runs", "{}", "{\"phase\":\"Running\"}");
    ptj_put_job(p, "bad", "{}",
                "{\"phase\":\"Failed\",\"reason\":\"BackoffLimitExceeded\",\"lastFailure\":{\"rank\":3,"
                "\"exitCode\":42,"
                "\"message\":\"  File \\\"a.py\\\", line 2, in f\\nValueError: boom\\nmore\"}}");
    ptj_put_job(p, "late", "{}", "{\"phase\":\"Failed\",\"reason\":\"DeadlineExceeded\"}");
    ptj_expect(p, RUN("watch", "ok", FINISHED), 0, " ok: Succeeded\n", NULL);
    ptj_expect(p, RUN("watch", "ok", RUNNING), 0, " ok: Succeeded\n", NULL);
    ptj_expect(p, RUN("watch", "runs", RUNNING), 0, " runs: Running\n", NULL);
    ptj_expect(p, RUN("watch", "bad", FINISHED), 42, " bad: Failed",
               "bad failed (BackoffLimitExceeded): rank 3: ValueError: boom\n");
    ptj_expect(p, RUN("watch", "bad", RUNNING), 42, " bad: Failed", "bad failed");
    ptj_put_job(p, "big", "{}",
                "{\"phase\":\"Failed\",\"reason\":\"OOMKilled\",\"lastFailure\":{\"rank\":0,\"exitCode\":137,"
                "\"reason\":\"OOMKilled\","
                "\"message\":\"20 MiB\"}}");
    ptj_expect(p, RUN("watch", "big", FINISHED), 137, " big: Failed",
               "big failed: rank 0: OOMKilled: 20 MiB\n");
    ptj_expect(p, RUN("watch", "late", FINISHED), 1, " late: Failed", "late failed (DeadlineExceeded)\n");
    /* It looks once. */
    ptj_expect(p, RUN("watch", "ok", FINISHED, "--timeout=0"), 0, " ok: Succeeded\n", NULL);
    ptj_expect(p, RUN("watch", "bad", FINISHED, "--timeout=0"), 42, " bad: Failed", "bad failed");
    ptj_expect(p, RUN("watch", "runs", FINISHED, "--timeout=0s"), 124, " runs: Running\n",
               "timed out: runs is Running\n");
    ptj_expect(p, RUN("watch", "none", FINISHED, "--timeout=0"), 124, NULL,
               "timed out: there is no training job \"none\" in namespace team\n");
    ptj_expect(p, RUN("watch", "none", FINISHED), 1, NULL,
               "there is no training job \"none\" in namespace team; with --timeout");
    ptj_expect(p, RUN("watch", "ok", "--until=lunch"), 2, NULL, "--until: expected running or finished");
    ptj_expect(p, RUN("watch", "ok", FINISHED, "--timeout=soon"), 2, NULL, "--timeout: expected a time");
    ptj_expect(p, RUN("watch", FINISHED), 2, NULL, "--until needs NAME");
    ptj_expect(p, RUN("watch", "ok", FINISHED, "--once"), 2, NULL, "--until needs NAME, and excludes --once");
    ptj_expect(p, RUN("watch", "ok", "--timeout=5m"), 2, NULL, "--timeout needs --until");
    ptj_expect(p, RUN("watch", "big"), 1, " big: Failed", NULL); /* without --until as ever */
}

/* Wait until its watch of jobs is open. */
static void await_watch(const struct ptj *p)
{
    while (!fake_open_watches(p->server))
        usleep(1000);
}

static void test_ends_later(void **state)
{
    static const struct fake_fault_plan ALL = {.fault = FAKE_DROP_BEFORE};
    struct ptj *p = *state;

    ptj_put_job(p, "a", "{}", "{\"phase\":\"Pending\"}");
    const pid_t pid = ptj_start(p, RUN("watch", "a", FINISHED, "--timeout=10m"));
    await_watch(p);
    ptj_put_job(p, "a", "{}", "{\"phase\":\"Running\"}");
    fake_plan_fault(p->server, &ALL);
    fake_close_watches(p->server);
    /* Two failures in a row are reported; curl itself tries again when a connection that it kept is closed. */
    while (fake_faults_done(p->server) < 3)
        usleep(1000);
    ptj_put_job(p, "a", "{}", "{\"phase\":\"Failed\",\"lastFailure\":{\"exitCode\":3}}");
    fake_plan_fault(p->server, NULL);
    struct ptj_result r = ptj_wait(p, pid);
    assert_int_equal(r.status, 3);
    assert_non_null(strstr(r.err, "trying again"));
    assert_non_null(strstr(r.err, "answers again"));
    assert_non_null(strstr(r.out, " a: Failed"));
    ptj_forget(&r);
}

static void test_comes_later(void **state)
{
    struct ptj *p = *state;

    const pid_t pid = ptj_start(p, RUN("watch", "a", RUNNING, "--timeout=10m"));
    await_watch(p);
    ptj_put_job(p, "a", "{}", "{\"phase\":\"Running\"}");
    struct ptj_result r = ptj_wait(p, pid);
    assert_int_equal(r.status, 0);
    assert_non_null(strstr(r.out, " a: Running\n"));
    ptj_forget(&r);
}

static void test_is_deleted(void **state)
{
    struct ptj *p = *state;

    ptj_put_job(p, "a", "{}", "{\"phase\":\"Running\"}");
    const pid_t pid = ptj_start(p, RUN("watch", "a", FINISHED));
    await_watch(p);
    assert_true(fake_remove(p->server, PTJ_JOBS "/a"));
    struct ptj_result r = ptj_wait(p, pid);
    assert_int_equal(r.status, 1);
    assert_non_null(strstr(r.err, "a was deleted"));
    ptj_forget(&r);
}

static void test_times_out(void **state)
{
    struct ptj *p = *state;

    ptj_put_job(p, "a", "{}", "{\"phase\":\"Pending\",\"reason\":\"ImagePullBackOff\"}");
    ptj_expect(p, RUN("watch", "a", FINISHED, "--timeout=1"), 124, " a: Pending (ImagePullBackOff)\n",
               "timed out: a is Pending (ImagePullBackOff)\n");
    fake_plan_fault(p->server, &(struct fake_fault_plan){.fault = FAKE_HANG_BEFORE});
    ptj_expect(p, RUN("watch", "a", FINISHED, "--timeout=1"), 124, NULL,
               "timed out: the API server has not answered\n");
    fake_plan_fault(p->server, NULL);
}

/* Until the first answer somebody may be typing a password: no time runs before it. */
static void test_login(void **state)
{
    struct ptj *p = *state;
    struct onpty t;

    fake_plan_fault(p->server, &(struct fake_fault_plan){.fault = FAKE_HANG_BEFORE});
    onpty_start(&t, p, RUN("watch", "b", FINISHED, "--timeout=0s"), COLUMNS, ROWS);
    while (!fake_faults_done(p->server) && !t.hung_up)
        (void)onpty_read(&t, 1);
    while (onpty_read(&t, 50))
        continue;
    assert_int_equal(t.reads, 0);
    onpty_keys(&t, "\x03");
    assert_int_equal(onpty_wait(&t), 128 + SIGINT);
    onpty_end(&t);
    fake_plan_fault(p->server, NULL);
    onpty_start(&t, p, RUN("watch", "b", FINISHED, "--timeout=0s"), COLUMNS, ROWS);
    assert_int_equal(onpty_wait(&t), 124);
    assert_int_equal(t.vt.page, 0); /* the table is left, and below it why it ended */
    onpty_until(
        &t,
        "0 training jobs in namespace team\nkubectl ptj watch: timed out: there is no training job \"b\"");
    onpty_end(&t);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_ended_before, ptj_setup, ptj_teardown),
        cmocka_unit_test_setup_teardown(test_ends_later, ptj_setup, ptj_teardown),
        cmocka_unit_test_setup_teardown(test_comes_later, ptj_setup, ptj_teardown),
        cmocka_unit_test_setup_teardown(test_is_deleted, ptj_setup, ptj_teardown),
        cmocka_unit_test_setup_teardown(test_times_out, ptj_setup, ptj_teardown),
        cmocka_unit_test_setup_teardown(test_login, ptj_setup, ptj_teardown),
    };

    if (argc < 2)
        return 2;
    ptj_program = argv[1];
    return cmocka_run_group_tests(tests, NULL, NULL);
}
