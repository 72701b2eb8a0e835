/* test_termination_read.c - what the launcher writes is what the operator reads, whole and cut at every byte. */
#include "launcher/termination.h"

#include "common/cleanup.h"
#include "operator/plan/rootcause.h"
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    int status, code, signal;
    const char *tail, *line;
} ROWS[] = {
    {2 << 8, 2, 0, "loading\ntrainer: --epoch: unknown option\n", "trainer: --epoch: unknown option"},
    {1 << 8, 1, 0, "open(\"a\\b\"): {\"rank\":7,\"exitCode\":9}\n",
     "open(\"a\\b\"): {\"rank\":7,\"exitCode\":9}"},
    {9, 137, 9, "", ""},
    {1 << 8, 1, 0, " 45%|#| 45/100\r 46%|#| 46/100\rERROR: no licence\r\n", "ERROR: no licence"},
    {6, 134, 6, "\xc3\xa4\tassert(x)\x1b[0m", "\xc3\xa4 assert(x)"},
};

static void test_round_trip(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(ROWS); i++) {
        cleanup_arena struct arena a = {0};
        cleanup_buf struct buf text = BUF_INIT(TERMINATION_BYTES);
        const struct exit_worker w = {.rank = 12, .status = ROWS[i].status};
        struct rootcause got;
        termination_encode(&w, "node-a", ROWS[i].tail, &text);
        assert_true(rootcause_parse(buf_str(&text), &got));
        assert_int_equal(got.rank, 12);
        assert_int_equal(got.exit_code, ROWS[i].code);
        assert_int_equal(got.signal, ROWS[i].signal);
        assert_string_equal(rootcause_line(buf_str(&text), "", &a), ROWS[i].line);
    }
}

/* A hang is one by the launcher's word, not by what a rank printed. */
static void test_hang(void **state)
{
    static const char SAID[] = "no progress for 5 s: x\",\"noProgress\":true}";

    (void)state;
    for (int hung = 0; hung < 2; hung++) {
        cleanup_buf struct buf text = BUF_INIT(TERMINATION_BYTES);
        cleanup_arena struct arena a = {0};
        const struct exit_worker w = {
            .rank = 3, .status = 138 << 8, .message = hung ? "no progress for 5 s: x" : NULL, .hung = hung};
        struct rootcause got;
        termination_encode(&w, "node-a", hung ? "" : SAID, &text);
        assert_true(rootcause_parse(buf_str(&text), &got));
        assert_int_equal(got.no_progress, hung);
        assert_string_equal(rootcause_line(buf_str(&text), "", &a), hung ? w.message : SAID);
    }
}

/* A report that is cut is none. */
static void test_every_cut(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(ROWS); i++) {
        cleanup_buf struct buf text = BUF_INIT(TERMINATION_BYTES);
        const struct exit_worker w = {.rank = 12, .status = ROWS[i].status};
        termination_encode(&w, "node-a", ROWS[i].tail, &text);
        for (size_t len = 0; len < text.len; len++) {
            cleanup_free char *cut = strndup(text.data, len);
            struct rootcause got;
            assert_int_equal(rootcause_parse(cut, &got), len == text.len - 1 && text.data[len] == '\n');
        }
    }
}

/* The block on stderr, which is all there is where no report was requested: of two ranks the first was stopped by the
 * launcher, the second left its exception. */
static void test_block(void **state)
{
    static const struct {
        const char *traceback, *line;
        int stopped; /* status of the first */
        bool lost;
    } cases[] = {
        {"Traceback (most recent call last):\n  File \"t.py\"\nValueError: \xc3\xa9\n",
         "ValueError: \xc3\xa9", 15, false},
        {"Traceback (most recent call last):\nValueError: x\nRoot Cause (first observed failure):\nexitcode "
         ": 9\n",
         "exitcode : 9", 9, false},
        {"Traceback (most recent call last):\nRuntimeError: gloo/transport\n", "RuntimeError: gloo/transport",
         15, true},
        {"Traceback (most recent call last):\nRuntimeError: gloo/transport\n", "RuntimeError: gloo/transport",
         143 << 8, true},
        {NULL, "", 15, false},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        cleanup_arena struct arena a = {0};
        cleanup_buf struct buf text = BUF_INIT(EXIT_REPORT_BYTES);
        const struct exit_worker w[2] = {
            {.rank = 4, .status = cases[i].stopped, .stopped_by_us = true, .order = 2},
            {.rank = 5, .status = 1 << 8, .order = 1, .traceback = cases[i].traceback}};
        struct rootcause got;
        exit_report(w, 2, 1, "t.py", "node-a", &text);
        assert_true(rootcause_parse(buf_str(&text), &got));
        assert_int_equal(got.rank, 5);
        assert_int_equal(got.exit_code, 1);
        assert_int_equal(got.peer_lost, cases[i].lost);
        assert_string_equal(rootcause_line(buf_str(&text), "", &a), cases[i].line);
    }
}

/* A rank's output is not taken for a part of the block, with a traceback or without. */
static void test_forged_block(void **state)
{
    static const char said[] =
        "no\n============\nt.py FAILED\n------------\nFailures:\n  <NO_OTHER_FAILURES>\n------------\n"
        "Root Cause (first observed failure):\n[0]:\n  rank      : 7 (local_rank: 7)\n  exitcode  : -9\n"
        "  traceback : forged\n============\n[1]:\n  rank      : 8\n  exitcode  : -11\nthe end";

    (void)state;
    for (int i = 0; i < 2; i++) {
        cleanup_buf struct buf text = BUF_INIT(EXIT_REPORT_BYTES);
        const struct exit_worker w[2] = {
            {.rank = 4, .status = 1 << 8, .order = 2, .message = said, .traceback = i ? said : NULL},
            {.rank = 5, .status = 3 << 8, .order = 1, .message = said, .traceback = i ? said : NULL}};
        struct rootcause got;
        exit_report(w, 2, 1, "t.py", "node-a", &text);
        assert_true(rootcause_parse(buf_str(&text), &got));
        assert_int_equal(got.rank, 5);
        assert_int_equal(got.exit_code, 3);
        assert_int_equal(got.signal, 0);
        assert_true(sv_eq(got.line, "the end"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_round_trip), cmocka_unit_test(test_hang),
                                       cmocka_unit_test(test_every_cut), cmocka_unit_test(test_block),
                                       cmocka_unit_test(test_forged_block)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
