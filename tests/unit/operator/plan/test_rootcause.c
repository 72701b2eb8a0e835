/* test_rootcause.c - torchrun's failure report, whole and mangled. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/cleanup.h"
#include "operator/plan/rootcause.h"

#include <stdio.h>
#include <string.h>

#define HEAD                                                                                                 \
    "Failures:\n[1]:\n  rank      : 3 (local_rank: 3)\n  exitcode  : -15 (pid: 9)\n"                         \
    "------\nRoot Cause (first observed failure):\n[0]:\n  time      : 2026-01-01_00:09:57\n"

struct row {
    const char *message;
    bool found;
    int32_t exit_code, signal, rank;
};

static const struct row ROWS[] = {
    {HEAD "  rank      : 1 (local_rank: 1)\n  exitcode  : -9 (pid: 28379)  (SIGKILL)\n", true, 137, 9, 1},
    {HEAD "  rank      : 12 (local_rank: 4)\n  exitcode  : 138 (pid: 1)\n", true, 138, 0, 12},
    {HEAD "  exitcode  : 1 (pid: 1)\n", true, 1, 0, -1},
    {HEAD "  exitcode  : -64\n", true, 192, 64, -1},
    {HEAD "  exitcode  : -65\n", false, 0, 0, 0},
    {HEAD "  exitcode  : 256\n", false, 0, 0, 0},
    {HEAD "  exitcode  : 0 (pid: 1)\n", false, 0, 0, 0},
    {HEAD "  exitcode  : \n", false, 0, 0, 0},
    {HEAD "  exitcode", false, 0, 0, 0},
    {HEAD "  exitcodes : 5\n", false, 0, 0, 0},
    {HEAD "  exitcode  : 99999999999999999999\n", false, 0, 0, 0},
    {"Root Cause (first observed failure):\nexitcode : 3\nRoot Cause (first observed failure):\nexitcode : "
     "-6\n",
     true, 134, 6, -1},
    /* A worker's exception, recorded and shown below the report, may quote another one. */
    {HEAD "  host      : j-node-0\n  rank      : 1 (local_rank: 1)\n  exitcode  : 1 (pid: 25289) \n"
          "  error_file: /tmp/error.json\n  traceback : Traceback (most recent call last):\n"
          "    File \"train.py\", line 16, in main\n  RuntimeError: it's \"quoted\"\n"
          "  Root Cause (first observed failure):\n    exitcode : 138\n  \n=====\n",
     true, 1, 0, 1},
    /* One that was not recorded stands before the report, at the beginning of a line. */
    {"RuntimeError: it's \"quoted\"\nRoot Cause (first observed failure):\n  exitcode : 138\n" HEAD
     "  rank      : 1 (local_rank: 1)\n  exitcode  : -11 (pid: 7)  (SIGSEGV)\n  error_file: <N/A>\n"
     "  traceback : Signal 11 (SIGSEGV) received by PID 7\n",
     true, 139, 11, 1},
    /* The log's tail begins in the report: nothing above it is needed. */
    {"Root Cause (first observed failure):\n[0]:\n  time      : 2026-11-21_04:50:22\n  host      : "
     "localhost\n"
     "  rank      : 1 (local_rank: 1)\n  exitcode  : -9 (pid: 24609)  (SIGKILL)\n  error_file: <N/A>\n"
     "  traceback : Signal 9 (SIGKILL) received by PID 24609\n===",
     true, 137, 9, 1},
    /* It begins behind the title: whose code this is, nobody knows. */
    {"first observed failure):\n[0]:\n  rank      : 1 (local_rank: 1)\n  exitcode  : -9 (pid: 24609)\n",
     false, 0, 0, 0},
    {"exitcode : -9\n", false, 0, 0, 0},
    {"", false, 0, 0, 0},
    {"SignalException: Process 7 got signal: 15\n", true, 143, 15, -1},
    {"SignalException: Process 7 got signal: 2", true, 130, 2, -1},
    {"SignalException: got signal: 0", false, 0, 0, 0},
    {"SignalException: got signal: x", false, 0, 0, 0},
    {"got signal: 15", false, 0, 0, 0},
};

static void test_rows(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(ROWS); i++) {
        struct rootcause got = {0};
        bool found = rootcause_parse(ROWS[i].message, &got);
        if (found != ROWS[i].found)
            fail_msg("row %zu: found %d", i, found);
        if (!found)
            continue;
        assert_int_equal(got.exit_code, ROWS[i].exit_code);
        assert_int_equal(got.signal, ROWS[i].signal);
        assert_int_equal(got.rank, ROWS[i].rank);
    }
}

/* A message is cut anywhere: whatever is left must parse or not, never read beyond. */
static void test_every_cut(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(ROWS); i++) {
        size_t len = strlen(ROWS[i].message);
        for (size_t from = 0; from <= len; from++) {
            struct rootcause got;
            cleanup_free char *tail = strdup(ROWS[i].message + from);
            cleanup_free char *head = strndup(ROWS[i].message, from);
            (void)rootcause_parse(tail, &got);
            (void)rootcause_parse(head, &got);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_rows), cmocka_unit_test(test_every_cut)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
