/* test_watch.c - kubectl ptj watch on a pseudo terminal and in a pipe, against the fake API server.
 *
 * usage: test_watch <kubectl-ptj>
 */
#include "test.h"

#include "onpty.h"

#include "cli/jobfeed.h"
#include "cli/watch/display.h"
#include "common/json.h"
#include "common/memory.h"
#include "kube/watcher.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define RUNNING(percent)                                                                                     \
    "{\"phase\":\"Running\",\"ready\":\"2/"                                                                  \
    "2\",\"progress\":{\"time\":\"2026-11-24T11:59:50Z\",\"percent\":" percent ",\"loss\":0.5}}"

enum { COLUMNS = 90, ROWS = 12 };

static int begin(void **state)
{
    static struct ptj p;

    ptj_begin(&p, ptj_program);
    ptj_put_job(&p, "bert", "{}", RUNNING("47"));
    *state = &p;
    return 0;
}

static void expect_given_back(const struct onpty *t, const char *last)
{
    char *text = vt_text(&t->vt);

    assert_int_equal(t->vt.page, 0);
    assert_true(t->vt.cursor && t->vt.wraps);
    assert_true(onpty_is_sane(t));
    if (!strstr(text, last))
        fail_msg("expected \"%s\" in:\n%s", last, text);
    free(text);
}

static void test_terminal(void **state)
{
    struct ptj *p = *state;
    struct onpty t;

    onpty_start(&t, p, RUN("watch"), COLUMNS, ROWS);
    onpty_until(&t, "47%");
    assert_int_equal(t.vt.page, 1);
    assert_false(t.vt.cursor);
    assert_false(onpty_is_sane(&t));
    ptj_put_job(p, "second", "{}", "{\"phase\":\"Pending\",\"reason\":\"PodsStarting 0/4\"}");
    onpty_until(&t, "PodsStarting 0/4");
    ptj_put_job(p, "bert", "{}", RUNNING("48"));
    onpty_until(&t, "48%");
    assert_true(t.vt.updates >= 3);
    assert_int_equal(t.vt.cleared, 0);
    assert_true(fake_put(
        p->server, "/api/v1/namespaces/team/events/e1",
        "{\"metadata\":{\"name\":\"e1\",\"namespace\":\"team\"},\"reason\":\"Restarting\",\"message\":"
        "\"rank 3 failed\",\"lastTimestamp\":\"2026-11-24T11:59:50Z\",\"involvedObject\":{\"kind\":"
        "\"PyTorchTrainingJob\",\"namespace\":\"team\",\"name\":\"bert\"}}"));
    onpty_until(&t, "ago Restarting: rank 3 failed");
    assert_true(fake_remove(p->server, PTJ_JOBS "/second"));
    onpty_while(&t, "second");
    onpty_keys(&t, "xyq");
    assert_int_equal(onpty_wait(&t), 0);
    expect_given_back(&t, "48%");
    onpty_end(&t);
}

/* Frames come a few times a second however often something changes, and not at all when nothing does. */
static void test_frames(void **state)
{
    struct ptj *p = *state;
    struct onpty t;

    onpty_start(&t, p, RUN("watch"), COLUMNS, ROWS);
    onpty_until(&t, "47%");
    const long before = t.vt.updates;
    const int64_t begin_ms = clock_mono_ms();
    for (int i = 0; i < 60; i++) {
        char percent[256];
        snprintf(percent, sizeof(percent), "{\"phase\":\"Running\",\"restarts\":%d}", i);
        ptj_put_job(p, "bert", "{}", percent);
        fake_settle(p->server);
        (void)onpty_read(&t, 3);
    }
    onpty_until(&t, " 59 ");
    assert_true(t.vt.updates - before <= (clock_mono_ms() - begin_ms) / DISPLAY_FRAME_MS + 2);
    const long updates = t.vt.updates;
    assert_false(onpty_read(&t, DISPLAY_FRAME_MS)); /* what comes next may be drawn at once */
    ptj_put_job(p, "bert", "{\"some\":\"thing that is not shown\"}", "{}");
    fake_settle(p->server);
    assert_false(onpty_read(&t, DISPLAY_FRAME_MS));
    ptj_put_job(p, "bert", "{}", "{\"restarts\":60}");
    onpty_until(&t, " 60 ");
    assert_int_equal(t.vt.updates, updates + 1);
    onpty_end(&t);
}

static void test_resize(void **state)
{
    struct ptj *p = *state;
    struct onpty t;

    for (int i = 0; i < 20; i++) {
        char name[16];
        snprintf(name, sizeof(name), "job-%02d", i);
        ptj_put_job(p, name, "{}", "{\"phase\":\"Running\"}");
    }
    onpty_start(&t, p, RUN("watch"), COLUMNS, 30);
    onpty_until(&t, "job-19");
    onpty_resize(&t, 50, 8);
    onpty_until(&t, "17 more: 17 Running");
    onpty_until(&t, "q quits");
    onpty_resize(&t, 120, 40);
    onpty_until(&t, "job-19");
    onpty_while(&t, " more: ");
    onpty_keys(&t, "q");
    assert_int_equal(onpty_wait(&t), 0);
    onpty_end(&t);
}

/* Each of these ends it; the terminal is given back. All at once, since each waits for its first frame. */
static void test_signals(void **state)
{
    static const struct {
        int signal;
        const char *key;  /* that sends it; NULL: kill does */
        const char *last; /* what is left on the screen; NULL: nobody looks */
    } ENDS[] = {{SIGTERM, NULL, "47%"}, {SIGSEGV, NULL, ""},     {SIGABRT, NULL, ""},
                {SIGHUP, NULL, NULL},   {SIGINT, "\x03", "47%"}, {SIGQUIT, "\x1c", ""}};
    static struct onpty t[ARRAY_LEN(ENDS)];

    for (size_t i = 0; i < ARRAY_LEN(ENDS); i++)
        onpty_start(&t[i], *state, RUN("watch"), COLUMNS, ROWS);
    for (size_t i = 0; i < ARRAY_LEN(ENDS); i++) {
        onpty_until(&t[i], "47%");
        if (ENDS[i].key)
            onpty_keys(&t[i], ENDS[i].key);
        else
            kill(t[i].pid, ENDS[i].signal);
        assert_int_equal(onpty_wait(&t[i]), 128 + ENDS[i].signal);
        if (ENDS[i].last)
            expect_given_back(&t[i], ENDS[i].last);
        onpty_end(&t[i]);
    }
}

/* Under a shell: Ctrl-Z gives the terminal back, fg takes it again. */
static void test_stop_and_go_on(void **state)
{
    struct ptj *p = *state;
    struct onpty t;

    onpty_shell(&t, p, COLUMNS, ROWS);
    onpty_keys(&t, "$PTJ watch\n");
    onpty_until(&t, "47%");
    onpty_keys(&t, "\x1a");
    onpty_until(&t, "Stopped");
    assert_int_equal(t.vt.page, 0);
    assert_true(t.vt.cursor && onpty_is_sane(&t));
    ptj_put_job(p, "bert", "{}", RUNNING("48"));
    onpty_keys(&t, "bg\necho in back$((2 * 3))ground\n");
    onpty_until(&t, "in back6ground");
    for (int i = 0; i < 5; i++) { /* what is typed is the shell's */
        char keys[64], want[64];
        snprintf(keys, sizeof(keys), "echo line$((%d * 7))\n", i + 1);
        snprintf(want, sizeof(want), "line%d\n", (i + 1) * 7);
        onpty_keys(&t, keys);
        onpty_until(&t, want);
    }
    assert_int_equal(t.vt.page, 0);
    onpty_keys(&t, "fg\n");
    onpty_until(&t, "48%");
    assert_int_equal(t.vt.page, 1);
    onpty_keys(&t, "q");
    onpty_until(&t, "1 Running");
    while (t.vt.page)
        (void)onpty_read(&t, 100);
    onpty_keys(&t, "echo status $?\n");
    onpty_until(&t, "status 0");
    onpty_end(&t);
}

static void lose(struct ptj *p)
{
    static const struct fake_fault_plan ALL = {.fault = FAKE_DROP_BEFORE};

    fake_plan_fault(p->server, &ALL);
    fake_close_watches(p->server);
}

/* Beside each other, since each takes the program's own time: a server that is lost and comes back, and one that never answers;
 * that one is told only where nobody may be typing a password. */
static void test_lost_and_slow_server(void **state)
{
    static const struct fake_fault_plan HANGS = {.path_part = "/pytorchtrainingjobs",
                                                 .fault = FAKE_HANG_BEFORE};
    static const struct fake_fault_plan SECOND = {.path_part = "continue=", .fault = FAKE_HANG_BEFORE};
    struct ptj *p = *state, slow, paged;
    struct onpty t, login, waiting, half;

    ptj_begin(&paged, ptj_program);
    for (int i = 0; i <= WATCHER_PAGE_ITEMS; i++) {
        char name[16];
        snprintf(name, sizeof(name), "j%d", i);
        ptj_put_job(&paged, name, "{}", "{}");
    }
    fake_plan_fault(paged.server, &SECOND);
    onpty_start(&half, &paged, RUN("watch"), COLUMNS, ROWS);
    ptj_begin(&slow, ptj_program);
    fake_plan_fault(slow.server, &HANGS);
    onpty_start(&login, &slow, RUN("watch"), COLUMNS, ROWS);
    while (!fake_faults_done(slow.server))
        usleep(1000);
    slow.program = "/bin/sh";
    onpty_start(&waiting, &slow, RUN("-c", "exec \"$0\" watch </dev/null", ptj_program), COLUMNS, ROWS);
    onpty_start(&t, p, RUN("watch"), COLUMNS, ROWS);
    /* These two first: they do not wait for ever. */
    onpty_until(&waiting, "No answer since ");
    assert_int_equal(waiting.vt.page, 0); /* kubectl may prompt for a login until it answers */
    onpty_keys(&waiting, "\x03");
    onpty_until(&half, "No answer since ");
    assert_int_equal(onpty_wait(&waiting), 128 + SIGINT);
    onpty_end(&waiting);
    onpty_end(&half);
    ptj_end(&paged);
    onpty_until(&t, "47%");
    fake_settle(p->server);
    lose(p);
    onpty_until(&t, "No server since ");
    onpty_until(&t, "47%");
    ptj_put_job(p, "bert", "{}", RUNNING("60"));
    fake_plan_fault(p->server, NULL);
    onpty_while(&t, "No server since ");
    onpty_until(&t, "60%");
    onpty_until(&t, "q quits");
    onpty_end(&t);
    while (onpty_read(&login, 0))
        continue;
    assert_int_equal(login.reads, 0);
    onpty_keys(&login, "\x03");
    assert_int_equal(onpty_wait(&login), 128 + SIGINT);
    onpty_end(&login);
    ptj_end(&slow);
}

static void test_rights(void **state)
{
    static const struct fake_fault_plan JOBS = {.path_part = "pytorchtrainingjobs", PTJ_FORBIDDEN};
    static const struct fake_fault_plan EVENTS = {.path_part = "events", PTJ_FORBIDDEN};
    static const struct fake_fault_plan NONE = {
        .path_part = "pytorchtrainingjobs", .fault = FAKE_STATUS, .status = 404};
    struct ptj *p = *state;
    struct onpty t;

    fake_plan_fault(p->server, &JOBS);
    onpty_start(&t, p, RUN("watch"), 200, ROWS);
    assert_int_equal(onpty_wait(&t), 1);
    expect_given_back(
        &t, "you lack the permission to watch pytorchtrainingjobs.batch.tensorstack.dev in namespace team");
    onpty_end(&t);
    fake_plan_fault(p->server, &NONE);
    ptj_expect(p, RUN("watch"), 1, NULL, "is the operator installed");
    fake_plan_fault(p->server, &EVENTS);
    onpty_start(&t, p, RUN("watch"), 200, ROWS);
    onpty_until(&t, "No events: you lack the permission to watch events in namespace team");
    onpty_until(&t, "47%");
    onpty_end(&t);
}

static void test_one_job_on_a_terminal(void **state)
{
    struct ptj *p = *state;
    struct onpty t;

    ptj_put_job(p, "other", "{}", RUNNING("11"));
    onpty_start(&t, p, RUN("watch", "bert"), COLUMNS, ROWS);
    onpty_until(&t, "47%");
    ptj_put_job(p, "bert", "{}", "{\"phase\":\"Failed\",\"reason\":\"BackoffLimitExceeded\"}");
    assert_int_equal(onpty_wait(&t), 1);
    expect_given_back(&t, "BackoffLimitExceeded");
    char *text = vt_text(&t.vt);
    assert_null(strstr(text, "other"));
    free(text);
    onpty_end(&t);
    /* One that had ended before is shown, too. */
    onpty_start(&t, p, RUN("watch", "bert"), COLUMNS, ROWS);
    assert_int_equal(onpty_wait(&t), 1);
    expect_given_back(&t, "1 training job in namespace team: 1 Failed");
    expect_given_back(&t, "BackoffLimitExceeded");
    onpty_end(&t);
}

static void test_pipe(void **state)
{
    struct ptj *p = *state;
    struct ptj_result r;

    const pid_t pid = ptj_start(p, RUN("watch", "bert"));
    ptj_await(p, "out", " bert: Running, 2/2 pods, 47%, loss 0.5\n");
    ptj_put_job(p, "bert", "{}", RUNNING("49"));
    ptj_put_job(p, "bert", "{}", "{\"phase\":\"Running\",\"restarts\":1}");
    ptj_await(p, "out", "restarts 1\n");
    lose(p);
    ptj_put_job(p, "bert", "{}", "{\"phase\":\"Succeeded\"}");
    usleep(1);
    fake_plan_fault(p->server, NULL);
    r = ptj_wait(p, pid);
    assert_int_equal(r.status, 0);
    assert_non_null(strstr(r.out, " bert: Succeeded, restarts 1\n"));
    assert_null(strstr(r.out, "49%"));
    assert_null(strchr(r.out, '\x1b'));
    ptj_forget(&r);
}

static void test_pipe_of_all(void **state)
{
    struct ptj *p = *state;

    const pid_t pid = ptj_start(p, RUN("watch", "-A"));
    ptj_await(p, "out", " team/bert: Running");
    assert_true(fake_remove(p->server, PTJ_JOBS "/bert"));
    ptj_await(p, "out", " team/bert: deleted\n");
    kill(pid, SIGTERM);
    struct ptj_result r = ptj_wait(p, pid);
    assert_int_equal(r.status, 128 + SIGTERM);
    ptj_forget(&r);
}

/* The n-th line of a file in p->dir (from 0), once it is complete, as an object. */
static cJSON *line_of(struct ptj *p, int n)
{
    struct err err;

    for (int i = 0; i < 600000; i++, usleep(1000)) {
        const char *at = ptj_text(p, "out"), *end = strchr(at, '\n');
        for (int k = 0; k < n && end; k++, end = strchr(at, '\n'))
            at = end + 1;
        if (end)
            return json_parse(at, (size_t)(end - at), &err);
    }
    fail_msg("line %d never came: %s", n, ptj_text(p, "out"));
    return NULL;
}

static void expect_line(struct ptj *p, int n, const char *key, const char *want)
{
    cleanup_json cJSON *o = line_of(p, n);
    const char *got = json_str(o, key);

    assert_non_null(json_str(o, "time"));
    assert_string_equal(json_str(o, "namespace"), "team");
    assert_string_equal(json_str(o, "name"), "bert");
    assert_string_equal(got ? got : "", want);
}

static void test_json(void **state)
{
    struct ptj *p = *state;

    const pid_t pid = ptj_start(p, RUN("watch", "-o", "json"));
    cleanup_json cJSON *first = line_of(p, 0);
    assert_string_equal(json_str(first, "phase"), "Running");
    assert_string_equal(json_str(first, "ready"), "2/2");
    assert_int_equal(json_i64(cJSON_GetObjectItem(first, "progress"), "percent", -1), 47);
    assert_false(cJSON_HasObjectItem(first, "reason") || cJSON_HasObjectItem(first, "lastFailure") ||
                 cJSON_HasObjectItem(first, "restarts") || cJSON_HasObjectItem(first, "deleted"));
    ptj_put_job(p, "bert", "{\"what is not\":\"in a line\"}", RUNNING("47"));
    ptj_put_job(
        p, "bert", "{}",
        "{\"phase\":\"Failed\",\"reason\":\"a\\u001b[2J\\u202eb\",\"lastFailure\":{\"rank\":3,\"exitCode\":"
        "137,\"message\":\"two\\nlines\",\"node\":{\"no\":\"text\"}}}");
    expect_line(p, 1, "reason",
                "a\x1b[2J\xe2\x80\xae"
                "b");
    assert_null(strchr(ptj_text(p, "out"), '\x1b'));
    assert_null(strstr(ptj_text(p, "out"), "\xe2\x80\xae"));
    cleanup_json cJSON *failed = line_of(p, 1);
    const cJSON *failure = cJSON_GetObjectItem(failed, "lastFailure");
    assert_string_equal(json_str(failure, "message"), "two\nlines");
    assert_int_equal(json_i64(failure, "exitCode", -1), 137);
    assert_false(cJSON_HasObjectItem(failure, "node"));
    assert_true(fake_remove(p->server, PTJ_JOBS "/bert"));
    expect_line(p, 2, "phase", "");
    cleanup_json cJSON *last = line_of(p, 2);
    assert_true(cJSON_IsTrue(cJSON_GetObjectItem(last, "deleted")));
    kill(pid, SIGTERM);
    struct ptj_result r = ptj_wait(p, pid);
    assert_string_equal(r.err, "");
    ptj_forget(&r);
}

/* The jobs as they are: lines, objects, and on a terminal the table, which takes nothing of it over. */
static void test_once(void **state)
{
    struct ptj *p = *state;
    struct onpty t;

    ptj_put_job(p, "bad", "{}", "{\"phase\":\"Failed\"}");
    ptj_expect(p, RUN("watch", "--once"), 0, " bert: Running, 2/2 pods, 47%, loss 0.5\n", NULL);
    ptj_expect(p, RUN("watch", "--once", "bad"), 0, " bad: Failed\n", NULL);
    ptj_expect(p, RUN("watch", "--once", "none"), 1, NULL, "there is no training job \"none\"");
    struct ptj_result r = ptj_run(p, RUN("watch", "-A", "--once", "-o", "json"));
    assert_int_equal(r.status, 0);
    cleanup_json cJSON *one = line_of(p, 0), *two = line_of(p, 1);
    assert_true(json_str(one, "name") && json_str(two, "name"));
    ptj_forget(&r);
    ptj_expect(p, RUN("watch", "-o", "table"), 2, NULL, "--output: expected json, got \"table\"");
    for (int i = 0; i < 2 * ROWS; i++) {
        char name[16];
        snprintf(name, sizeof(name), "job-%02d", i);
        ptj_put_job(p, name, "{}", "{}");
    }
    onpty_start(&t, p, RUN("watch", "--once"), COLUMNS, ROWS);
    vt_resize(&t.vt, COLUMNS, 2 * ROWS + 8); /* what scrolled out is looked at, too */
    assert_int_equal(onpty_wait(&t), 0);
    assert_int_equal(t.vt.updates, 0);
    expect_given_back(&t, "26 training jobs in namespace team: 1 Running, 24 without status, 1 Failed");
    expect_given_back(&t, "job-23");
    onpty_end(&t);
}

/* A connection that is cut and made again at once, as proxies do, is nobody's trouble. */
static void test_cut_once(void **state)
{
    struct ptj *p = *state;

    const pid_t pid = ptj_start(p, RUN("watch"));
    ptj_await(p, "out", "47%");
    fake_settle(p->server);
    fake_close_watches(p->server);
    ptj_put_job(p, "bert", "{}", "{\"phase\":\"Pending\"}");
    ptj_await(p, "out", "Pending");
    kill(pid, SIGTERM);
    struct ptj_result r = ptj_wait(p, pid);
    assert_string_equal(r.err, "");
    ptj_forget(&r);
}

static void test_ends(void **state)
{
    struct ptj *p = *state;

    ptj_expect(p, RUN("watch", "none"), 1, NULL, "there is no training job \"none\" in namespace team\n");
    ptj_expect(p, RUN("watch", "bert", "-A"), 2, NULL, "kubectl ptj watch: NAME goes with neither");
    ptj_put_job(p, "bad", "{}",
                "{\"phase\":\"Failed\",\"lastFailure\":{\"rank\":1,\"message\":\"exit code 7\"}}");
    ptj_expect(p, RUN("watch", "bad"), 1, "bad: Failed; rank 1: exit code 7", NULL);
    const pid_t pid = ptj_start(p, RUN("watch", "bert"));
    ptj_await(p, "out", "47%");
    assert_true(fake_remove(p->server, PTJ_JOBS "/bert"));
    struct ptj_result r = ptj_wait(p, pid);
    assert_int_equal(r.status, 1);
    assert_non_null(strstr(r.err, "bert was deleted"));
    ptj_forget(&r);
}

/* Nobody reads on: it ends by itself, without a word. */
static void test_reader_gone(void **state)
{
    struct ptj *p = *state;
    struct onpty t;

    onpty_shell(&t, p, 120, ROWS);
    onpty_keys(&t, "$PTJ watch | head -n 1; echo \"status ${PIPESTATUS[0]}\"\n");
    onpty_until(&t, "bert: Running");
    onpty_until(&t, "status 141");
    onpty_end(&t);
}

static void test_selector(void **state)
{
    struct ptj *p = *state;

    assert_true(
        fake_put(p->server, PTJ_JOBS "/red",
                 "{\"metadata\":{\"name\":\"red\",\"namespace\":\"team\",\"labels\":{\"colour\":\"red\"}},"
                 "\"status\":{\"phase\":\"Pending\"}}"));
    const pid_t pid = ptj_start(p, RUN("watch", "-l", "colour=red"));
    ptj_await(p, "out", " red: Pending\n");
    kill(pid, SIGKILL);
    struct ptj_result r = ptj_wait(p, pid);
    assert_null(strstr(r.out, "bert"));
    ptj_forget(&r);
}

static int lists(struct ptj *p)
{
    return fake_log_count(p->server, "LIST", "/pytorchtrainingjobs");
}

/* The reflector lists again at once where a version expired; there is no second list when jobfeed would have retried. */
static void test_expired_version(void **state)
{
    struct ptj *p = *state;
    const pid_t pid = ptj_start(p, RUN("watch"));

    ptj_await(p, "out", "47%");
    fake_settle(p->server);
    ptj_put_job(p, "bert", "{}",
                "{\"phase\":\"Pending\"}"); /* a watch without an event may not end so soon */
    ptj_await(p, "out", "Pending");
    assert_int_equal(lists(p), 1);
    fake_compact(p->server);
    fake_close_watches(p->server);
    while (lists(p) < 2)
        usleep(1000);
    usleep(2 * JOBFEED_RETRY_MS * 1000);
    assert_int_equal(lists(p), 2);
    kill(pid, SIGKILL);
    struct ptj_result r = ptj_wait(p, pid);
    ptj_forget(&r);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_terminal, begin, ptj_teardown),
        cmocka_unit_test_setup_teardown(test_frames, begin, ptj_teardown),
        cmocka_unit_test_setup_teardown(test_resize, begin, ptj_teardown),
        cmocka_unit_test_setup_teardown(test_signals, begin, ptj_teardown),
        cmocka_unit_test_setup_teardown(test_stop_and_go_on, begin, ptj_teardown),
        cmocka_unit_test_setup_teardown(test_lost_and_slow_server, begin, ptj_teardown),
        cmocka_unit_test_setup_teardown(test_rights, begin, ptj_teardown),
        cmocka_unit_test_setup_teardown(test_one_job_on_a_terminal, begin, ptj_teardown),
        cmocka_unit_test_setup_teardown(test_pipe, begin, ptj_teardown),
        cmocka_unit_test_setup_teardown(test_pipe_of_all, begin, ptj_teardown),
        cmocka_unit_test_setup_teardown(test_json, begin, ptj_teardown),
        cmocka_unit_test_setup_teardown(test_once, begin, ptj_teardown),
        cmocka_unit_test_setup_teardown(test_cut_once, begin, ptj_teardown),
        cmocka_unit_test_setup_teardown(test_ends, begin, ptj_teardown),
        cmocka_unit_test_setup_teardown(test_reader_gone, begin, ptj_teardown),
        cmocka_unit_test_setup_teardown(test_selector, begin, ptj_teardown),
        cmocka_unit_test_setup_teardown(test_expired_version, begin, ptj_teardown),
    };

    if (argc < 2)
        return 2;
    ptj_program = argv[1];
    return cmocka_run_group_tests(tests, NULL, NULL);
}
