/* test_tracker.c - a real torchrun reports the training's progress on request while it runs. */
#include "launcher/progress/tracker.h"

#include "crew.h"

#include "../ports.h"
#include "common/fsutil.h"
#include "rendezvous/net.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#define UNTIL(file) "until [ -e " file " ]; do sleep 0.01; done; "

enum { POLLS_MAX = 300000 };

static int served; /* the port */

static void set_port(void)
{
    char text[12];

    served = ports_take();
    snprintf(text, sizeof(text), "%d", served);
    setenv("TORCHKEEPER_PROGRESS_PORT", text, 1);
    setenv("PTJ_JOB_UID", "7a-B", 1);
    setenv("PTJ_ATTEMPT", "4", 1);
}

static int clean(void **state)
{
    (void)state;
    unsetenv("TORCHKEEPER_PROGRESS_PORT");
    unsetenv("TORCHKEEPER_PROGRESS_FILE");
    unsetenv("PTJ_JOB_UID");
    unsetenv("PTJ_ATTEMPT");
    unsetenv("PTJ_TERMINATION_LOG");
    return 0;
}

/* The body of a page; "" while nobody listens, or where the server has closed the connection: it has a quota for each client. */
static const char *ask(const char *path)
{
    static char got[16384];
    const struct sockaddr_in to = {.sin_family = AF_INET,
                                   .sin_port = htons((uint16_t)served),
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    cleanup_close int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    char request[64];
    size_t len = 0;
    ssize_t n;

    if (connect(fd, (const struct sockaddr *)&to, sizeof(to)) < 0)
        return "";
    const int asked = snprintf(request, sizeof(request), "GET %s HTTP/1.1\r\n\r\n", path);
    if (send(fd, request, (size_t)asked, MSG_NOSIGNAL) != asked)
        return "";
    while ((n = recv(fd, got + len, sizeof(got) - 1 - len, 0)) > 0)
        len += (size_t)n;
    got[len] = '\0';
    const char *body = strstr(got, "\r\n\r\n");
    return body ? body + 4 : "";
}

/* Poll until the answer has `want`, while torchrun runs. */
static const char *ask_for(const struct run *r, const char *path, const char *want)
{
    const char *got = "";
    siginfo_t info = {0};

    for (int i = 0; i < POLLS_MAX && !info.si_pid; i++) {
        got = ask(path);
        if (strstr(got, want))
            return got;
        (void)net_wait(-1, 0, 5);
        assert_int_equal(waitid(P_PID, (id_t)r->pid, &info, WEXITED | WNOHANG | WNOWAIT), 0);
    }
    fail_msg("%s never had \"%s\" but: %s", path, want, got);
    return NULL;
}

static int count(const char *text, const char *part)
{
    int n = 0;

    for (; (text = strstr(text, part)); text += strlen(part))
        n++;
    return n;
}

/* Rank 0's lines count, of both its streams; another rank's do not. */
static void test_lines(void **state)
{
    struct run r;

    (void)state;
    set_port();
    run_start(&r, RUN_ARGS("--nproc-per-node=2"),
              "if [ $RANK = 1 ]; then echo step 9/10; touch said; " UNTIL("end") "exit; fi; " UNTIL(
                  "said") "echo step 3/10; " UNTIL("two") "echo step 5/10 >&2; " UNTIL("end"));
    ask_for(&r, "/progress", "\"step\": 3, \"totalSteps\": 10, \"percent\": 30");
    ask_for(&r, "/progress", "{\"job\": \"7a-B\", \"attempt\": 4, \"restarts\": 0, \"time\": \"20");
    ask_for(&r, "/metrics", "\ntorchkeeper_training_progress_ratio 0.3\n");
    run_touch(&r, "two");
    ask_for(&r, "/progress", "\"step\": 5, \"totalSteps\": 10, \"percent\": 50");
    run_touch(&r, "end");
    assert_int_equal(run_wait(&r), 0);
    assert_string_equal(ask("/progress"), "");
    assert_non_null(strstr(buf_str(&r.out), "step 3/10\n"));
    run_release(&r);
}

/* A restart is counted, and the new ranks begin without the old ones' progress, of lines and of the file. */
static void test_restart(void **state)
{
    struct run r;

    (void)state;
    set_port();
    run_start(&r, RUN_ARGS("--max-restarts=1"),
              "if [ $TORCHELASTIC_RESTART_COUNT = 0 ]; then echo '{\"step\": 7}' "
              ">$TORCHKEEPER_PROGRESS_FILE; " UNTIL("fail") "exit 1; fi; " UNTIL(
                  "on") "echo '{\"step\": 8}' >$TORCHKEEPER_PROGRESS_FILE; " UNTIL("end"));
    ask_for(&r, "/progress", "\"step\": 7}");
    run_touch(&r, "fail");
    assert_null(strstr(ask_for(&r, "/progress", "\"restarts\": 1"), "step"));
    ask_for(&r, "/metrics", "\ntorchkeeper_training_restarts_total 1\n");
    run_touch(&r, "on");
    ask_for(&r, "/progress", "\"step\": 8}");
    run_touch(&r, "end");
    assert_int_equal(run_wait(&r), 0);
    run_release(&r);
}

/* The file in the run's folder: it wins over lines, and goes with the folder. */
static void test_file(void **state)
{
    struct run r;

    (void)state;
    set_port();
    run_start(&r, RUN_ARGS("--nproc-per-node=2"),
              "[ $RANK = 0 ] || exit 0; echo step 1/100; echo '{\"step\": 4, \"totalSteps\": 8, \"loss\": "
              "0.25, \"percent\": 50}' >$TORCHKEEPER_PROGRESS_FILE; " UNTIL(
                  "two") "echo step 90/100; touch said; " UNTIL("end") "ls $TORCHKEEPER_PROGRESS_FILE >left");
    ask_for(&r, "/progress", "\"step\": 4, \"totalSteps\": 8, \"percent\": 50, \"loss\": 0.25");
    run_touch(&r, "two");
    assert_true(run_wait_file(&r, "said"));
    ask_for(&r, "/progress", "\"step\": 4,");
    run_touch(&r, "end");
    assert_int_equal(run_wait(&r), 0);
    cleanup_buf struct buf left = BUF_INIT(200);
    char path[128];
    struct err err;
    snprintf(path, sizeof(path), "%s/left", r.dir);
    assert_int_equal(fs_read(path, &left, &err), 0);
    left.data[strcspn(left.data, "\n")] = '\0';
    assert_int_equal(strncmp(left.data, r.dir, strlen(r.dir)), 0);
    *strrchr(left.data, '/') = '\0';
    assert_int_not_equal(access(left.data, F_OK), 0); /* the folder */
    run_release(&r);
}

/* A run that succeeds leaves where it ended as the termination message, though nobody has polled since; one that fails does not, and
 * what the program itself left there stays. */
static void test_last(void **state)
{
    static const struct {
        const char *script, *want; /* NULL: none is left */
        int code;
    } rows[] = {
        {"echo step 3/10 loss: 0.5; echo step 10/10 loss: 0.25",
         "\"step\": 10, \"totalSteps\": 10, \"percent\": 100", 0},
        {"echo '{\"step\": 7}' >$TORCHKEEPER_PROGRESS_FILE", "\"step\": 7", 0},
        {"[ $RANK = 0 ] || echo step 3/10; echo fine", NULL, 0},
        {"echo step 3/10; exit 1", NULL, 1},
        {"echo step 3/10; echo of my own >report", "of my own\n", 0},
    };

    (void)state;
    setenv("PTJ_TERMINATION_LOG", "report", 1);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        cleanup_buf struct buf left = BUF_INIT(4096);
        char path[128];
        struct err err;
        struct run r;
        set_port();
        assert_int_equal(run_once(RUN_ARGS("--nproc-per-node=2"), rows[i].script, &r), rows[i].code);
        snprintf(path, sizeof(path), "%s/report", r.dir);
        const bool there = fs_read(path, &left, &err) == 0;
        if (there != (rows[i].want != NULL) || (there && !strstr(buf_str(&left), rows[i].want)))
            fail_msg("%s: left \"%s\"", rows[i].script, there ? buf_str(&left) : "");
        run_release(&r);
    }
}

/* What cannot be served is reported in a line, and nothing else happens. */
static void test_no_service(void **state)
{
    static const struct {
        const char *name, *value, *want;
    } rows[] = {
        {"TORCHKEEPER_PROGRESS_PORT", "0",
         "torchrun: no progress: TORCHKEEPER_PROGRESS_PORT=0: expected 1..65535\n"},
        {"TORCHKEEPER_PROGRESS_PORT", "65536", "PROGRESS_PORT=65536: expected 1..65535\n"},
        {"TORCHKEEPER_PROGRESS_PORT", "29402x", "PROGRESS_PORT=29402x: expected 1..65535\n"},
        {"PTJ_ATTEMPT", "-1", ": PTJ_ATTEMPT=-1: expected a number\n"},
        {"PTJ_JOB_UID", "a\"b", ": PTJ_JOB_UID=a\"b: expected at most 63 of A-Z a-z 0-9 -\n"},
    };
    struct run r;
    int taken, port;
    struct err err;
    char text[80];

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        set_port();
        setenv(rows[i].name, rows[i].value, 1);
        assert_int_equal(run_once(RUN_ARGS("--nproc-per-node=1"), "echo file=$TORCHKEEPER_PROGRESS_FILE", &r),
                         0);
        if (!strstr(buf_str(&r.err), rows[i].want) || count(buf_str(&r.err), "\n") != 1)
            fail_msg("%s=%s: %s", rows[i].name, rows[i].value, buf_str(&r.err));
        assert_string_equal(buf_str(&r.out), "file=\n");
        run_release(&r);
    }
    set_port();
    assert_true((taken = net_listen(served, &port, &err)) >= 0);
    assert_int_equal(run_once(RUN_ARGS("--nproc-per-node=1"), "exit 3", &r), 3);
    snprintf(text, sizeof(text), "torchrun: no progress on port %d: cannot listen at port %d: Address ",
             served, served);
    assert_non_null(strstr(buf_str(&r.err), text));
    assert_int_equal(count(buf_str(&r.err), "no progress"), 1);
    close(taken);
    run_release(&r);
}

/* Of several nodes the one with rank 0 knows how far the training is; another one that serves too names it. */
static void test_nodes(void **state)
{
    static const char *const ranks[] = {"--node-rank=0", "--node-rank=1"};
    int ports[2];
    struct crew c;

    (void)state;
    crew_open(&c, 2);
    c.is_static = true;
    for (int i = 0; i < 2; i++) {
        set_port();
        ports[i] = served;
        crew_start(&c, i, RUN_ARGS(ranks[i], "--nnodes=2"),
                   "echo step $((RANK + 2))/10; touch said; " UNTIL("end"));
    }
    for (int i = 0; i < 2; i++)
        assert_true(run_wait_file(&c.runs[i], "said"));
    served = ports[0];
    ask_for(&c.runs[0], "/progress", "\"step\": 2, ");
    served = ports[1];
    assert_string_equal(ask("/progress"),
                        "{\"job\": \"7a-B\", \"attempt\": 4, \"restarts\": 0, \"time\": \"\"}\n");
    for (int i = 0; i < 2; i++)
        run_touch(&c.runs[i], "end");
    for (int i = 0; i < 2; i++)
        crew_expect_node(&c, i, 0);
    crew_release(&c);
}

/* ---- the tracker itself, on a clock of the test's */

static void leave(const char *path, const char *text)
{
    struct err err;

    assert_int_equal(fs_write_atomic(path, text, strlen(text), &err), 0);
}

/* The file's content from earlier ranks is not reported for the new ones; what these leave is read within a second, once. */
static void test_old_file(void **state)
{
    char folder[] = "/tmp/test-tracker-XXXXXX", path[64];
    struct logs l = {.run_dir = "/none"};
    struct err err = {0};
    struct tracker t;

    (void)state;
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/p.json", folder);
    leave(path, "{\"step\": 99}");
    set_port();
    setenv("TORCHKEEPER_PROGRESS_FILE", path, 1);
    assert_int_equal(tracker_open(&t, &l, &err), 0);
    for (int restarts = 0; restarts < 2; restarts++) {
        tracker_begin(&t, true, restarts);
        tracker_look(&t, 5000);
        assert_int_equal(t.answer.progress.now.step, -1);
        assert_int_equal(t.file_ms, 0);
        leave(path, "{\"step\": 1, \"loss\": 2}");
        tracker_look(&t, 6000);
        assert_int_equal(t.answer.progress.now.step, 1);
        assert_int_equal(t.file_ms, 6000);
        assert_non_null(strstr(ask("/progress"), "\"step\": 1, \"loss\": 2}"));
        tracker_look(&t, 7000);
        assert_int_equal(t.file_ms, 6000);
    }
    /* A node without rank 0 looks at nothing. */
    leave(path, "{\"step\": 3}");
    tracker_begin(&t, false, 2);
    leave(path, "{\"step\": 30}");
    tracker_look(&t, 9000);
    assert_int_equal(t.answer.progress.now.step, -1);
    tracker_straggler(&t, 3, 1.5);
    assert_non_null(strstr(ask("/progress"),
                           "\"restarts\": 2, \"time\": \"\", \"straggler\": {\"rank\": 3, \"ratio\": 1.5}}"));
    tracker_begin(&t, false, 3);
    assert_null(strstr(ask("/progress"), "straggler"));
    tracker_close(&t);
    assert_string_equal(ask("/progress"), "");
    unlink(path);
    rmdir(folder);
    arena_release(&l.arena);
}

static void hear(struct logs *l, int local, int stream, const char *bytes)
{
    l->heard(l->heard_ctx, local, stream, bytes, strlen(bytes));
}

/* Lines come in pieces, on two streams. Of a flood only a part is read, and no line is made of two halves. */
static void test_pieces_and_flood(void **state)
{
    static char much[TRACKER_BYTES_PER_S];
    struct logs l = {.run_dir = NULL};
    struct err err = {0};
    struct tracker t;

    (void)state;
    set_port();
    assert_int_equal(tracker_open(&t, &l, &err), 0);
    assert_true(l.watches && l.watches_out && l.heard);
    assert_null(t.path);
    tracker_begin(&t, true, 0);
    hear(&l, 0, 0, "step 2/1");
    hear(&l, 0, 1, "00\nstep 1/100\n");
    hear(&l, 1, 0, "\nstep 99/100\n");
    assert_int_equal(t.answer.progress.now.step, 1);
    hear(&l, 0, 0, "00\n");
    assert_int_equal(t.answer.progress.now.step, 2);
    t.flood_ms = INT64_MAX / 2; /* this second does not end */
    memset(much, 'x', sizeof(much));
    hear(&l, 0, 0, "step 3");
    l.heard(l.heard_ctx, 0, 0, much, sizeof(much));
    hear(&l, 0, 0, "\nstep 30/100\nste");
    assert_int_equal(t.answer.progress.now.step, 2);
    t.flood_ms = 0; /* this one begins now */
    hear(&l, 0, 0, "step 4");
    hear(&l, 0, 0, "0/100\nstep 5");
    assert_int_equal(t.answer.progress.now.step, 2);
    hear(&l, 0, 0, "0/100\n");
    assert_int_equal(t.answer.progress.now.step, 50);
    assert_non_null(strstr(ask("/progress"), "\"step\": 50, "));
    hear(&l, 0, 0, "step 6");
    tracker_begin(&t, true, 1); /* an unfinished line was the last of ranks that are gone */
    hear(&l, 0, 0, "0/100\n");
    assert_int_equal(t.answer.progress.now.step, -1);
    tracker_begin(&t, false, 0);
    hear(&l, 0, 0, "step 60/100\n");
    assert_int_equal(t.answer.progress.now.step, -1);
    tracker_close(&t);
}

/* Without a port nothing is watched, listened to or looked at. */
static void test_not_asked(void **state)
{
    struct logs l = {.run_dir = "/none"};
    struct err err = {0};
    struct tracker t;

    (void)state;
    setenv("TORCHKEEPER_PROGRESS_PORT", "", 1);
    setenv("PTJ_ATTEMPT", "bad", 1);
    assert_int_equal(tracker_open(&t, &l, &err), 0);
    assert_false(l.watches || l.watches_out || l.heard || t.path);
    tracker_begin(&t, true, 0);
    tracker_look(&t, 5000);
    tracker_straggler(&t, 1, 2);
    tracker_close(&t);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_lines, clean),
        cmocka_unit_test_teardown(test_restart, clean),
        cmocka_unit_test_teardown(test_file, clean),
        cmocka_unit_test_teardown(test_last, clean),
        cmocka_unit_test_teardown(test_no_service, clean),
        cmocka_unit_test_teardown(test_nodes, clean),
        cmocka_unit_test_teardown(test_old_file, clean),
        cmocka_unit_test_teardown(test_pieces_and_flood, clean),
        cmocka_unit_test_teardown(test_not_asked, clean),
    };

    if (argc != 2)
        return 99;
    run_torchrun = argv[1];
    return cmocka_run_group_tests(tests, NULL, NULL);
}
