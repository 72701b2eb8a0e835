/* test_pages.c - kubectl ptj watch on a pseudo terminal: a job is selected, `why` and its logs are opened, and the terminal is given
 * back on every way out.
 *
 * usage: test_pages <kubectl-ptj>
 */
#include "test.h"

#include "onpty.h"

#include "common/cleanup.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SPEC                                                                                                 \
    "{\"replicaSpecs\":[{\"type\":\"node\",\"template\":{\"spec\":{\"containers\":[{\"name\":\"main\","      \
    "\"image\":\"i\"}]}}}]}"
#define FAILED                                                                                               \
    "{\"phase\":\"Failed\",\"reason\":\"PermanentExitCode\",\"completionTime\":\"2026-01-01T00:00:00Z\","    \
    "\"lastFailure\":{\"pod\":\"bad-node-0\",\"exitCode\":1,\"reason\":\"PermanentExitCode\",\"message\":"   \
    "\"KeyError: 'lr'\",\"time\":\"2026-01-01T00:00:00Z\",\"attempt\":0}}"

enum { COLUMNS = 90, ROWS = 24 };

/* "j" runs and prints, "bad" has failed: the table shows them in this order. */
static int begin(void **state)
{
    static struct ptj p;

    ptj_begin(&p, ptj_program);
    fake_add_kind(p.server, "/api/v1", "persistentvolumeclaims", "PersistentVolumeClaim");
    fake_add_kind(p.server, "/api/v1", "nodes", "Node");
    fake_add_kind(p.server, "/apis/policy/v1", "poddisruptionbudgets", "PodDisruptionBudget");
    ptj_put_job(&p, "j", SPEC, "{\"phase\":\"Running\",\"ready\":\"1/1\"}");
    ptj_put_job(&p, "bad", SPEC, FAILED);
    ptj_put_pod(
        &p, 0, 0, "{\"containers\":[{\"name\":\"main\"}]}",
        "{\"phase\":\"Running\",\"containerStatuses\":[{\"name\":\"main\",\"state\":{\"running\":{}}}]}");
    fake_pod_prints(p.server, PTJ_PODS "/j-node-0", "2026-01-01T00:00:00Z epoch 1\n");
    *state = &p;
    return 0;
}

static void start(struct onpty *t, struct ptj *p)
{
    onpty_start(t, p, RUN("watch"), COLUMNS, ROWS);
    onpty_until(t, "q quits, Enter why, l logs");
}

/* It ends with this status; the terminal is the shell's again. */
static void expect_end(struct onpty *t, int status)
{
    assert_int_equal(onpty_wait(t), status);
    assert_int_equal(t->vt.page, 0);
    assert_true(t->vt.cursor && t->vt.wraps);
    assert_true(onpty_is_sane(t));
    onpty_end(t);
}

static void test_why(void **state)
{
    struct ptj *p = *state;
    struct onpty t;

    start(&t, p);
    onpty_keys(&t, "\r");
    onpty_until(&t, "kubectl ptj logs j -n team shows what it prints");
    onpty_until(&t, "q goes back, w reads again, l logs");
    onpty_while(&t, "training jobs in");
    onpty_keys(&t, "q");
    onpty_until(&t, "2 training jobs in namespace team");
    onpty_keys(&t, "jw"); /* at once: no frame in between */
    onpty_until(&t, "Failed: a program ended with exit code 1");
    onpty_resize(&t, 60, 10);
    onpty_until(&t, "l logs, arrows scroll");
    onpty_while(&t, "Then kubectl");
    onpty_keys(&t, "\x1b[Bjjjj");
    onpty_until(&t, "Then kubectl");
    onpty_resize(&t, COLUMNS, ROWS);
    onpty_until(&t, "Failed: a program ended with exit code 1");
    ptj_put_job(p, "bad", SPEC, "{\"phase\":\"Running\",\"reason\":null,\"lastFailure\":null}");
    onpty_keys(&t, "w");
    onpty_until(&t, "Running for ");
    onpty_keys(&t, "\x1b");
    onpty_until(&t, "2 Running");
    onpty_keys(&t, "q");
    expect_end(&t, 0);
}

/* The selection follows its job, and goes to a neighbour when the job is gone; a page of it stays. */
static void test_deleted(void **state)
{
    struct ptj *p = *state;
    struct onpty t;

    ptj_put_job(p, "zoo", SPEC, "{\"phase\":\"Failed\"}");
    start(&t, p);
    onpty_keys(&t, "\x1b[B\r");
    onpty_until(&t, "kubectl delete ptj bad");
    assert_true(fake_remove(p->server, PTJ_JOBS "/bad"));
    onpty_until(&t, "bad was deleted; q goes back");
    onpty_keys(&t, "w");
    onpty_until(&t, "there is no training job \"bad\"");
    onpty_keys(&t, "q");
    onpty_until(&t, "2 training jobs");
    onpty_keys(&t, "w");
    onpty_until(&t, "kubectl describe ptj zoo");
    onpty_keys(&t, "q");
    assert_true(fake_remove(p->server, PTJ_JOBS "/j"));
    assert_true(fake_remove(p->server, PTJ_JOBS "/zoo"));
    onpty_until(&t, "0 training jobs");
    onpty_keys(&t, "wl\r"); /* of none */
    ptj_put_job(p, "new", SPEC, "{\"phase\":\"Running\"}");
    onpty_until(&t, "1 training job in");
    onpty_keys(&t, "q");
    expect_end(&t, 0);
}

static void test_logs(void **state)
{
    struct ptj *p = *state;
    struct onpty t;

    start(&t, p);
    onpty_keys(&t, "l");
    onpty_until(&t, "[node-0] epoch 1");
    assert_int_equal(t.vt.page, 0);
    assert_true(t.vt.cursor && t.vt.wraps);
    ptj_put_job(p, "bad", SPEC, "{\"phase\":\"Succeeded\"}"); /* the table does not draw into the logs */
    fake_pod_prints(p->server, PTJ_PODS "/j-node-0", "2026-01-01T00:00:01Z epoch 2\n");
    onpty_until(&t, "epoch 2");
    onpty_keys(&t, "x");
    onpty_keys(&t, "q");
    onpty_until(&t, "1 Running, 1 Succeeded");
    assert_int_equal(t.vt.page, 1);
    onpty_keys(&t, "jl"); /* one that has ended, of which nothing is left */
    onpty_until(&t, "no pod of bad is left");
    onpty_until(&t, "no more logs: any key goes back");
    onpty_keys(&t, "x");
    onpty_until(&t, "q quits, Enter why");
    onpty_keys(&t, "kl");
    onpty_until(&t, "epoch 2"); /* of before: the logs may not have begun */
    onpty_keys(&t, "w");        /* from one page to the other */
    onpty_until(&t, "shows what it prints");
    assert_int_equal(t.vt.page, 1);
    onpty_keys(&t, "l");
    onpty_until(&t, "epoch 2");
    onpty_keys(&t, "\x03");
    expect_end(&t, 128 + SIGINT);
}

/* A server that does not answer holds up no key. */
static void test_slow_server(void **state)
{
    static const struct fake_fault_plan HANGS = {.path_part = "/pods", .fault = FAKE_HANG_BEFORE};
    struct ptj *p = *state;
    struct onpty t;

    start(&t, p);
    fake_plan_fault(p->server, &HANGS);
    onpty_keys(&t, "w");
    onpty_until(&t, "Reading the status, pods, events and logs of j");
    onpty_keys(&t, "q");
    onpty_until(&t, "2 training jobs in");
    onpty_keys(&t, "l");
    onpty_until(&t, "logs of j: q goes back");
    onpty_keys(&t, "q");
    onpty_until(&t, "2 training jobs in");
    onpty_keys(&t, "w");
    onpty_until(&t, "Reading the status");
    kill(t.pid, SIGTERM);
    expect_end(&t, 128 + SIGTERM);
    fake_plan_fault(p->server, NULL);
}

/* With NAME a page stays open after the job's end; leaving it ends the program. */
static void test_one_job(void **state)
{
    struct ptj *p = *state;
    struct onpty t;

    onpty_start(&t, p, RUN("watch", "j"), COLUMNS, ROWS);
    onpty_until(&t, "q quits, Enter why, l logs");
    onpty_keys(&t, "w");
    onpty_until(&t, "shows what it prints");
    ptj_put_job(p, "j", SPEC, "{\"phase\":\"Failed\"}");
    fake_settle(p->server);
    onpty_keys(&t, "w");
    onpty_until(&t, "Failed: the job has failed");
    onpty_keys(&t, "q");
    expect_end(&t, 1);
}

/* Each in a page of `why` and in the logs. All at once, since each waits for its frames. */
static void test_signals(void **state)
{
    static const int SIGNALS[] = {SIGTERM, SIGHUP, SIGSEGV};
    static const char *const PAGES[][2] = {{"w", "shows what it prints"}, {"l", "epoch 1"}};
    static struct onpty t[ARRAY_LEN(SIGNALS) * ARRAY_LEN(PAGES)];

    for (size_t i = 0; i < ARRAY_LEN(t); i++)
        onpty_start(&t[i], *state, RUN("watch"), COLUMNS, ROWS);
    for (size_t i = 0; i < ARRAY_LEN(t); i++) {
        onpty_until(&t[i], "q quits, Enter why, l logs");
        onpty_keys(&t[i], PAGES[i % ARRAY_LEN(PAGES)][0]);
    }
    for (size_t i = 0; i < ARRAY_LEN(t); i++) {
        const int signal = SIGNALS[i / ARRAY_LEN(PAGES)];
        onpty_until(&t[i], PAGES[i % ARRAY_LEN(PAGES)][1]);
        kill(t[i].pid, signal);
        expect_end(&t[i], 128 + signal);
    }
}

static void test_stop_and_go_on(void **state)
{
    struct ptj *p = *state;
    struct onpty t;

    onpty_shell(&t, p, COLUMNS, ROWS);
    onpty_keys(&t, "$PTJ watch\n");
    onpty_until(&t, "q quits, Enter why");
    onpty_keys(&t, "l");
    onpty_until(&t, "epoch 1");
    onpty_keys(&t, "\x1a");
    onpty_until(&t, "Stopped");
    assert_true(t.vt.page == 0 && t.vt.cursor && onpty_is_sane(&t));
    onpty_keys(&t, "fg\n");
    fake_pod_prints(p->server, PTJ_PODS "/j-node-0", "2026-01-01T00:00:01Z epoch 2\n");
    onpty_until(&t, "epoch 2");
    while (onpty_is_sane(&t))
        (void)onpty_read(&t, 10);
    assert_int_equal(t.vt.page, 0);
    onpty_keys(&t, "w");
    onpty_until(&t, "shows what it prints");
    onpty_keys(&t, "\x1a");
    while (t.vt.page)
        (void)onpty_read(&t, 10);
    onpty_until(&t, "Stopped");
    onpty_keys(&t, "fg\n");
    onpty_until(&t, "shows what it prints");
    assert_int_equal(t.vt.page, 1);
    onpty_keys(&t, "qq"); /* from the page, and from the table */
    while (t.vt.page)
        (void)onpty_read(&t, 10);
    onpty_keys(&t, "echo status $?\n");
    onpty_until(&t, "status 0");
    onpty_end(&t);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_why, begin, ptj_teardown),
        cmocka_unit_test_setup_teardown(test_deleted, begin, ptj_teardown),
        cmocka_unit_test_setup_teardown(test_logs, begin, ptj_teardown),
        cmocka_unit_test_setup_teardown(test_slow_server, begin, ptj_teardown),
        cmocka_unit_test_setup_teardown(test_one_job, begin, ptj_teardown),
        cmocka_unit_test_setup_teardown(test_signals, begin, ptj_teardown),
        cmocka_unit_test_setup_teardown(test_stop_and_go_on, begin, ptj_teardown),
    };

    if (argc < 2)
        return 2;
    ptj_program = argv[1];
    return cmocka_run_group_tests(tests, NULL, NULL);
}
