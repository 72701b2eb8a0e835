/* test_exit.c - who is to blame, and the block that others parse. */
#include "launcher/exit.h"
#include "test.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { STOPPED = 1 << 20, RUNS = 1 << 21 };

/* A rank that ended: code, -signal, + STOPPED when by us. */
static struct exit_worker worker(int rank, int how, int order)
{
    int code = how & 0xffff;

    return (struct exit_worker){.rank = rank,
                                .local_rank = rank,
                                .pid = 1000 + rank,
                                .running = (how & RUNS) != 0,
                                .stopped_by_us = (how & STOPPED) != 0,
                                .status = code >= 1000 ? code - 1000 : code << 8,
                                .order = order};
}

enum { SIGNAL = 1000 };

static void test_of_the_launcher_itself(void **state)
{
    static const struct {
        enum err_kind kind;
        int code, want;
    } cases[] = {
        {ERR_FATAL, 0, 1},          {ERR_FATAL, EACCES, 1},
        {ERR_INVALID, ENOENT, 1},   {ERR_CONFLICT, EADDRINUSE, 1},
        {ERR_FATAL, EAGAIN, 138},   {ERR_FATAL, ENOMEM, 138},
        {ERR_INVALID, ENOMEM, 138}, {ERR_CONFLICT, EMFILE, 138},
        {ERR_FATAL, ENFILE, 138},   {ERR_FATAL, ENOBUFS, 138},
        {ERR_TIMEOUT, 0, 138},      {ERR_PEER, 0, 140},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const struct err err = {.kind = cases[i].kind, .code = cases[i].code};
        assert_int_equal(exit_error_code(&err), cases[i].want);
    }
}

static void test_root_cause(void **state)
{
    static const struct {
        int how[3], order[3];
        int want, unsure;
    } cases[] = {
        {{0, 0, 0}, {1, 2, 3}, -1, 2},
        {{RUNS, 7, RUNS}, {0, 1, 0}, 1, 0},
        {{3, 7, 0}, {2, 1, 3}, 1, 0},
        /* 140 has only noticed. */
        {{140, RUNS, SIGNAL + SIGKILL}, {1, 0, 2}, 2, 0},
        {{140, RUNS, RUNS}, {1, 0, 0}, 0, 2},
        {{140, 140, RUNS}, {2, 1, 0}, 1, 2},
        {{140, 138, 140}, {1, 3, 2}, 1, 0},
        {{140, SIGNAL + SIGABRT, RUNS}, {1, 2, 0}, 1, 1},
        /* A peer of a lost rank may be aborted, and one that aborts by itself makes its peers end with 1. */
        {{SIGNAL + SIGABRT, RUNS, RUNS}, {1, 0, 0}, 0, 1},
        {{134, 1, RUNS}, {1, 2, 0}, 0, 1},
        {{134, 1, 7}, {1, 2, 3}, 2, 0},
        {{1, SIGNAL + SIGABRT, RUNS}, {1, 2, 0}, 0, 0},
        {{SIGNAL + SIGABRT, SIGNAL + SIGKILL, RUNS}, {1, 2, 0}, 1, 0},
        /* What we stopped has only obeyed. */
        {{9, SIGNAL + SIGTERM + STOPPED, SIGNAL + SIGKILL + STOPPED}, {1, 2, 3}, 0, 0},
        {{1 + STOPPED, 140, 2 + STOPPED}, {1, 2, 3}, 1, 2},
        {{143 + STOPPED, 143 + STOPPED, 143 + STOPPED}, {1, 2, 3}, -1, 2},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct exit_worker w[3];
        int unsure;
        for (int r = 0; r < 3; r++)
            w[r] = worker(r, cases[i].how[r], cases[i].order[r]);
        assert_int_equal(exit_root_cause(w, 3, &unsure), cases[i].want);
        assert_int_equal(unsure, cases[i].unsure);
    }
}

#define NONE EXIT_WORDS_NONE
#define LOST EXIT_WORDS_LOST
#define OWN EXIT_WORDS_OWN

/* Rank 1 left an exception of its own and is held in its shutdown. Whichever of its peers ends first, in whichever of these
 * ways and with whichever words: it is to blame unless the peer's end is its own. The same if it has ended when it is polled. */
static void test_a_rank_that_raised(void **state)
{
    static const struct {
        int how;
        enum exit_words words;
        bool own;
    } ends[] = {
        {SIGNAL + SIGABRT, NONE, false},
        {SIGNAL + SIGABRT, LOST, false},
        {134, NONE, false},
        {1, NONE, false},
        {1, LOST, false},
        {140, NONE, false},
        {140, OWN, false},
        {1, OWN, true},
        {SIGNAL + SIGABRT, OWN, true},
        {7, NONE, true},
        {SIGNAL + SIGKILL, NONE, true},
        {SIGNAL + SIGSEGV, LOST, true},
        {2, LOST, true},
        {143, NONE, true},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(ends); i++)
        for (int peer = 0; peer <= 2; peer += 2) {
            const int want = ends[i].own ? peer : 1;
            struct exit_worker w[3];
            int unsure;
            for (int r = 0; r < 3; r++)
                w[r] = worker(r, r == peer ? ends[i].how : RUNS, r == peer);
            w[1].words = OWN;
            w[peer].words = ends[i].words;
            assert_int_equal(exit_mark_raised(w, 3, false, 77), !ends[i].own);
            assert_int_equal(exit_root_cause(w, 3, &unsure), want);
            assert_int_equal(unsure, 0);
            assert_true(ends[i].own || (exit_status_code(w[1].status) == 1 && w[1].wall_ms == 77));
            w[1].words = LOST; /* later output may be another's */
            w[1].running = false;
            w[1].stopped_by_us = true;
            assert_int_equal(exit_root_cause(w, 3, &unsure), want);
            w[1].status = 0; /* it ended well after all */
            assert_int_equal(exit_root_cause(w, 3, &unsure), peer);
        }
}

/* Another node's rank failed, and its launcher asks for the cause. */
static void test_a_rank_that_raised_is_asked_for(void **state)
{
    struct exit_worker w[3] = {worker(0, RUNS, 0), worker(1, RUNS, 0), worker(2, RUNS, 0)};
    int unsure;

    (void)state;
    assert_false(exit_mark_raised(w, 3, true, 5));
    w[0].words = LOST;
    w[2].words = OWN;
    assert_false(exit_mark_raised(w, 3, false, 5)); /* nobody has failed */
    assert_int_equal(exit_root_cause(w, 3, &unsure), -1);
    assert_true(exit_mark_raised(w, 3, true, 5));
    assert_int_equal(exit_root_cause(w, 3, &unsure), 2);
    assert_int_equal(unsure, 0);
    assert_int_equal(exit_status_code(w[2].status), 1);
    w[2].own_code = 138;
    assert_true(exit_mark_raised(w, 3, true, 5)); /* again, while it runs */
    assert_int_equal(exit_status_code(w[2].status), 138);
    w[2].running = false;
    assert_false(exit_mark_raised(w, 3, true, 5));
}

#define FRAMES                                                                                               \
    "Traceback (most recent call last):\n  File \"t.py\", line 30, in <module>\n    main()\n    ^^^^^^\n"
#define CLOSED                                                                                               \
    "RuntimeError: [/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:561] Connection closed by peer\n"

static void test_words_on_stderr(void **state)
{
    static const struct {
        const char *tail;
        enum exit_words want;
    } cases[] = {
        {"", NONE},
        {"epoch 1\nloss: 3\n", NONE},
        {FRAMES "ValueError: no such table\n", OWN},
        {"7, in <module>\n    main()\n  File \"t.py\", line 7, in main\nKeyError\n[W123 x.cpp] destroy it\n",
         OWN},
        {"[rank3]: Traceback (most recent call last):\n[rank3]:   File \"t.py\", line 7, in main\n[rank3]:   "
         "  f()\n"
         "[rank3]: ValueError: no such table\n",
         OWN},
        {FRAMES "_queue.Empty\n", OWN},
        /* What it is has not been printed yet. */
        {FRAMES, NONE},
        {FRAMES "Runtime", NONE},
        {"[rank3]:   File \"t.py\", line 7, in main\n[rank3]: ", NONE},
        {"[rank3]:   File \"t.py\", line 7, in main\n[rank3", NONE},
        {"[rank3]:   File \"t.py\", line 7, in main\n[rank3]: \n", NONE},
        {FRAMES CLOSED, LOST},
        {FRAMES CLOSED "terminate called without an active exception\n", LOST},
        {FRAMES CLOSED "\nThe above exception was the direct cause of:\n\n" FRAMES "Failed: step 3\n", LOST},
        /* faulthandler's */
        {"Fatal Python error: Aborted\n\nThread 0x1 (most recent call first):\n  File \"t.py\", line 30 in "
         "main\n\n"
         "Extension modules: numpy\n",
         NONE},
        {"  File \"\n\n\nValueError: 3\n", NONE},
        {"  indented\nValueError: 3\n", NONE},
        /* Python 3.13 colours it if FORCE_COLOR is set. */
        {"Traceback (most recent call last):\n  File \x1b[35m\"/x.py\"\x1b[0m, line \x1b[35m1\x1b[0m, in "
         "\x1b[35m<module>\x1b[0m\n    \x1b[31mf\x1b[0m()\n\x1b[1;35mValueError\x1b[0m: \x1b[35mno\x1b[0m\n",
         EXIT_WORDS_OWN},
        {"\x1b[2K  \x1b[1mFile \"/x.py\"\x1b[0m\n\x1b[31mValueError: no\n\x1b[0m", EXIT_WORDS_OWN},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        if (exit_words_on_stderr(cases[i].tail) != cases[i].want)
            fail_msg("%s", cases[i].tail);
}

/* A program that is killed in the middle of an escape sequence: the next line is another one's. */
static void test_cut_sequences(void **state)
{
    static const char *const CUT[] = {"\x1b",     "\x1b[", "\x1b[38;5", "\x1b]0;title", "\x1b]8;;http://a",
                                      "\x1bPq#0", "\x1bX", "\x1b^text", "\x1b_text",    "\x1b("};
    char tail[200];

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(CUT); i++) {
        snprintf(
            tail, sizeof(tail),
            "10%% %s\nTraceback (most recent call last):\n  File \"t.py\", line 7, in main\nValueError: no\n",
            CUT[i]);
        if (exit_words_on_stderr(tail) != EXIT_WORDS_OWN)
            fail_msg("%s", tail);
    }
}

static void test_codes(void **state)
{
    char name[32];

    (void)state;
    assert_int_equal(exit_status_code(3 << 8), 3);
    assert_int_equal(exit_status_code(SIGKILL), 137);
    assert_int_equal(exit_status_code(SIGSEGV | 0x80), 139); /* with a core dump */
    assert_string_equal(exit_signal_name(60, name), "signal 60");
    assert_string_equal(exit_signal_name(0, name), "signal 0");
    for (int i = 1; i < SIGRTMIN; i++) {
        const char *known = sigabbrev_np(i); /* this C library's */
        char want[32];
        snprintf(want, sizeof(want), "SIG%s", known ? known : "");
        if (!known)
            snprintf(want, sizeof(want), "signal %d", i);
        assert_string_equal(exit_signal_name(i, name), want);
    }
}

static void expect_report(const struct exit_worker *w, int n, int root, const char *want)
{
    cleanup_buf struct buf text = BUF_INIT(EXIT_REPORT_BYTES);

    exit_report(w, n, root, "train.py", "pod-0", &text);
    const char *failures = strstr(buf_str(&text), "Failures:\n");
    assert_non_null(failures);
    assert_string_equal(failures, want);
}

#define RULE "------------------------------------------------------------\n"
#define END "============================================================\n"

/* Byte by byte PyTorch's block (torch 2.15, ChildFailedError.format_msg), but for a space at the end of a line: a traceback
 * is indented, also behind its last newline; of a rank without error file stands what to do about it; ranks that were
 * stopped come last. */
static void test_report_as_pytorchs(void **state)
{
    struct exit_worker w[4] = {worker(0, SIGNAL + SIGTERM + STOPPED, 3), worker(1, 1, 1), worker(2, 0, 4),
                               worker(3, 7, 2)};

    (void)state;
    setenv("TZ", "XYZ-2", 1); /* two hours before UTC */
    tzset();
    for (int i = 0; i < 4; i++)
        w[i].wall_ms = 1700000000999;
    w[1].traceback = "Traceback (most recent call last):\n  File \"t.py\", line 5\nValueError: \xc3\xa9\n";
    w[1].message = "ValueError: \xc3\xa9";
    w[1].error_file = "/tmp/error.json";
    expect_report(w, 4, 1,
                  "Failures:\n"
                  "[1]:\n  time      : 2023-11-15_00:13:20\n  host      : pod-0\n"
                  "  rank      : 3 (local_rank: 3)\n  exitcode  : 7 (pid: 1003)\n  error_file: <N/A>\n"
                  "  traceback : To enable traceback see: "
                  "https://pytorch.org/docs/stable/elastic/errors.html\n"
                  "[2]:\n  time      : 2023-11-15_00:13:20\n  host      : pod-0\n"
                  "  rank      : 0 (local_rank: 0)\n  exitcode  : -15 (pid: 1000)  (SIGTERM)\n"
                  "  error_file: <N/A>\n  traceback : Signal 15 (SIGTERM) received by PID 1000\n" RULE
                  "Root Cause (first observed failure):\n"
                  "[0]:\n  time      : 2023-11-15_00:13:20\n  host      : pod-0\n"
                  "  rank      : 1 (local_rank: 1)\n  exitcode  : 1 (pid: 1001)\n"
                  "  error_file: /tmp/error.json\n"
                  "  traceback : Traceback (most recent call last):\n    File \"t.py\", line 5\n"
                  "  ValueError: \xc3\xa9\n  \n" END);
    w[0].stopped_by_us = w[3].stopped_by_us = true;
    w[0].running = true; /* it did not end */
    w[3].status = 0;
    w[1].traceback = NULL;
    w[1].message = "plain";
    w[1].host = "elsewhere";
    expect_report(w, 4, 1,
                  "Failures:\n  <NO_OTHER_FAILURES>\n" RULE "Root Cause (first observed failure):\n"
                  "[0]:\n  time      : 2023-11-15_00:13:20\n  host      : elsewhere\n"
                  "  rank      : 1 (local_rank: 1)\n  exitcode  : 1 (pid: 1001)\n"
                  "  error_file: /tmp/error.json\n  traceback : plain\n" END);
}

/* Whatever ranks leave, the report has room: the ends of tracebacks stand, no character is cut. */
static void test_report_of_long_texts(void **state)
{
    static char newlines[200000], characters[200001];
    cleanup_buf struct buf text = BUF_INIT(EXIT_REPORT_BYTES);
    struct exit_worker w[16];

    (void)state;
    memset(newlines, '\n', sizeof(newlines) - 1);
    for (size_t i = 0; i + 2 < sizeof(characters); i += 2)
        memcpy(characters + i, "\xc3\xa9", 2);
    for (int i = 0; i < 16; i++) {
        w[i] = worker(i, 1, i + 1);
        w[i].traceback = i % 2 ? newlines : characters;
        w[i].message = "m";
    }
    exit_report(w, 16, 0, "t", "pod-0", &text);
    const char *root = strstr(buf_str(&text), "Root Cause");
    assert_non_null(root);
    const char *cut = strstr(root, "  traceback : [the beginning is left out here]\n  \xc3\xa9\xc3\xa9");
    assert_non_null(cut);
    assert_string_equal(buf_str(&text) + text.len - strlen("\xc3\xa9\n" END), "\xc3\xa9\n" END);

    characters[0] = 'x'; /* a message is cut at a character, too */
    memmove(characters + 1, characters + 2, sizeof(characters) - 2);
    w[0].traceback = NULL;
    w[0].message = characters;
    buf_clear(&text);
    exit_report(w, 1, 0, "t", "pod-0", &text);
    assert_string_equal(buf_str(&text) + text.len - strlen("\xc3\xa9\n" END), "\xc3\xa9\n" END);
}

/* A pod's termination message is the last 2,048 bytes: the root cause must be in them whatever else failed. */
static void test_report_fits_a_termination_message(void **state)
{
    struct exit_worker w[64];
    static char message[5000];

    (void)state;
    for (int i = 0; i < 64; i++) {
        w[i] = worker(i, 138, i + 1);
        w[i].message = message;
        w[i].error_file = "/logs/none_abc/attempt_0/0/error.json";
    }
    for (int lines = 0; lines < 2; lines++) { /* which are indented */
        cleanup_buf struct buf text = BUF_INIT(65536);
        memset(message, lines ? '\n' : 'x', sizeof(message) - 1);
        exit_report(w, 64, 0, "trainer", "pod-0", &text);
        const char *tail = buf_str(&text) + text.len - 2048;
        assert_non_null(strstr(tail, "Root Cause (first observed failure):"));
        assert_non_null(strstr(tail, "exitcode  : 138 (pid: 1000)\n"));
        assert_non_null(strstr(buf_str(&text), "... and 55 more"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_of_the_launcher_itself),
        cmocka_unit_test(test_root_cause),
        cmocka_unit_test(test_a_rank_that_raised),
        cmocka_unit_test(test_a_rank_that_raised_is_asked_for),
        cmocka_unit_test(test_words_on_stderr),
        cmocka_unit_test(test_cut_sequences),
        cmocka_unit_test(test_codes),
        cmocka_unit_test(test_report_as_pytorchs),
        cmocka_unit_test(test_report_of_long_texts),
        cmocka_unit_test(test_report_fits_a_termination_message),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
