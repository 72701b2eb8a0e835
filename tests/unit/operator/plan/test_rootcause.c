/* test_rootcause.c - torchrun's failure report, whole and mangled. */
#include "common/cleanup.h"
#include "common/json.h"
#include "operator/api/pod.h"
#include "operator/plan/rootcause.h"
#include "test.h"

#include <stdio.h>
#include <string.h>

#define HEAD                                                                                                 \
    "Failures:\n[1]:\n  rank      : 3 (local_rank: 3)\n  exitcode  : -15 (pid: 9)\n"                         \
    "------\nRoot Cause (first observed failure):\n[0]:\n  time      : 2026-01-01_00:09:57\n"

#define FAILURES "Failures:\n"
#define ROOT "------\nRoot Cause (first observed failure):\n"
#define END "============================================================\n"
#define NO_RECORD "  error_file: <N/A>\n  traceback : To enable traceback see: https://pytorch.org/docs\n"
#define RECORD(exception)                                                                                    \
    "  error_file: /tmp/e/attempt_0/0/error.json\n  traceback : Traceback (most recent call last):\n"        \
    "    File \"train.py\", line 32, in main\n      dist.barrier()\n  " exception "\n  \n"
#define LOST                                                                                                 \
    "RuntimeError: [/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:561] Connection closed by peer "    \
    "[10.0.0.8]:36068. This is typically caused by a remote worker crashing."
#define TORN                                                                                                 \
    "  File \"<string>\", line 7, in __init__\n  File \"torch/distributed/elastic/multiprocessing/errors/"   \
    "__init__.py\", line 123, in __post_init__\n    self.error_file_data = json.load(fp)\n"                  \
    "                           ^^^^^^^^^^^^^\n"
#define WORKER(n, rank, code) "[" #n "]:\n  rank      : " #rank " (local_rank: 0)\n  exitcode  : " code "\n"

#define SAYS "\"host\":\"h\",\"message\":\"m\""

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
    {"    raise SignalException(f\"Process {os.getpid()} got signal: {sigval}\", sigval=sigval)\n"
     "torch.distributed.elastic.multiprocessing.api.SignalException: Process 1 got signal: 15\n",
     true, 143, 15, -1},
    /* The oldest exception is a consequence of an end that left none. */
    {FAILURES WORKER(0, 3, "138 (pid: 10)") NO_RECORD ROOT WORKER(1, 2, "1 (pid: 9)") RECORD(LOST) END, true,
     138, 0, 3},
    {FAILURES WORKER(0, 3, "-9 (pid: 10)") NO_RECORD ROOT WORKER(1, 2, "-15 (pid: 9)") RECORD(LOST) END, true,
     137, 9, 3},
    {FAILURES WORKER(0, 2, "1 (pid: 9)") RECORD(LOST) WORKER(1, 3, "1 (pid: 10)")
         RECORD("ValueError: no label") ROOT WORKER(2, 0, "1 (pid: 8)") RECORD(LOST) END,
     true, 1, 0, 3},
    /* Terminated by torchrun while it was dying of its exception. */
    {FAILURES "  <NO_OTHER_FAILURES>\n" ROOT WORKER(0, 2, "-15 (pid: 9)") RECORD("ValueError: no label") END,
     true, 1, 0, 2},
    {FAILURES WORKER(0, 3, "1 (pid: 10)") NO_RECORD ROOT WORKER(1, 2, "-15 (pid: 9)") NO_RECORD END, true, 1,
     0, 3},
    {FAILURES WORKER(0, 3, "-15 (pid: 10)") NO_RECORD ROOT WORKER(1, 2, "-15 (pid: 9)") NO_RECORD END, true,
     143, 15, 2},
    /* The root cause of its own is believed, whatever else ended how. */
    {FAILURES WORKER(0, 3, "-9 (pid: 10)") NO_RECORD ROOT WORKER(1, 2, "1 (pid: 9)") NO_RECORD END, true, 1,
     0, 2},
    {FAILURES WORKER(0, 3, "1 (pid: 10)") RECORD(LOST) ROOT WORKER(1, 2, "-9 (pid: 9)") NO_RECORD END, true,
     137, 9, 2},
    /* An abort is its own, unless another worker left an exception. */
    {FAILURES WORKER(0, 3, "-15 (pid: 10)") RECORD("ValueError: no label") ROOT WORKER(1, 2, "-6 (pid: 9)")
         NO_RECORD END,
     true, 1, 0, 3},
    {FAILURES WORKER(0, 3, "1 (pid: 10)") NO_RECORD ROOT WORKER(1, 2, "-6 (pid: 9)") NO_RECORD END, true, 134,
     6, 2},
    {FAILURES WORKER(0, 3, "1 (pid: 10)") RECORD(LOST) ROOT WORKER(1, 2, "-6 (pid: 9)") NO_RECORD END, true,
     134, 6, 2},
    {FAILURES WORKER(0, 3, "-6 (pid: 10)") NO_RECORD ROOT WORKER(1, 2, "-15 (pid: 9)") NO_RECORD END, true,
     134, 6, 3},
    /* A script may decode JSON, too. */
    {"    self.rows = json.load(fp)\njson.decoder.JSONDecodeError: Expecting value: line 1 column 1 (char "
     "0)\n",
     false, 0, 0, 0},
    {"warning: " LOST "\nTraceback (most recent call last):\nValueError: no label\n", false, 0, 0, 0},
    /* Our launcher's report, and its numbers are those of an end. One that is cut is none. */
    {"{\"rank\":3,\"exitCode\":2," SAYS "}\n", true, 2, 0, 3},
    {"{\"rank\":0,\"exitCode\":137,\"signal\":9," SAYS "}", true, 137, 9, 0},
    {"{\"rank\":2147483647,\"exitCode\":255," SAYS "} and more", true, 255, 0, INT32_MAX},
    /* gloo aborts a rank whose program is wrong; the source file is that of its messages about lost peers. */
    {"{\"rank\":0,\"exitCode\":134,\"signal\":6,\"host\":\"vm\",\"message\":\"terminate called after "
     "throwing an "
     "instance of 'gloo::EnforceNotMet'\\n  what():  [enforce fail at "
     "/__w/pytorch/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:464] op.preamble.length <= op.nbytes. "
     "300000 vs 100. Received data size doesn't match expected size. Is there a distributed collective "
     "mismatch "
     "in your code?\"}",
     true, 134, 6, 0},
    {"{\"rank\":3,\"exitCode\":1,\"host\":\"h\",\"message\":\"m", false, 0, 0, 0},
    {"{\"rank\":3," SAYS "}", false, 0, 0, 0},
    {"{\"rank\":\"3\",\"exitCode\":2," SAYS "}", false, 0, 0, 0},
    {"{\"rank\":2147483648,\"exitCode\":2," SAYS "}", false, 0, 0, 0},
    {"{\"rank\":-1,\"exitCode\":2," SAYS "}", false, 0, 0, 0},
    {"{\"rank\":3,\"exitCode\":0," SAYS "}", false, 0, 0, 0},
    {"{\"rank\":3,\"exitCode\":256," SAYS "}", false, 0, 0, 0},
    {"{\"rank\":3,\"exitCode\":137,\"signal\":15," SAYS "}", false, 0, 0, 0},
    {"{\"rank\":3,\"exitCode\":193,\"signal\":65," SAYS "}", false, 0, 0, 0},
    {" {\"rank\":3,\"exitCode\":2," SAYS "}", false, 0, 0, 0},
    {"{\"exitCode\":2,\"rank\":3," SAYS "}", false, 0, 0, 0},
    /* Lines of a user's own log. */
    {"{\"rank\":7,\"step\":100,\"loss\":1,\"exitCode\":1,\"message\":\"connection reset by peer\"}", false, 0,
     0, 0},
    {"{\"rank\":7,\"step\":1,\"exitCode\":1," SAYS "}", false, 0, 0, 0},
    {"{\"rank\":7,\"exitCode\":1}", false, 0, 0, 0},
    {"{\"rank\":7,\"exitCode\":1,\"message\":\"m\"}", false, 0, 0, 0},
    {"{\"rank\":7,\"exitCode\":1,\"host\":\"h\",\"message\":4}", false, 0, 0, 0},
};

/* Nothing but a lost peer; rank -1: not known. */
static const struct {
    const char *message;
    int32_t rank;
} LOST_ROWS[] = {
    {FAILURES WORKER(0, 3, "-15 (pid: 10)") RECORD(LOST) ROOT WORKER(1, 2, "1 (pid: 9)") RECORD(LOST) END, 2},
    {"    work.wait()\n  " LOST "\n  \n" END, -1},
    {"Traceback (most recent call last):\n" LOST "\n", -1},
    {"  ncclRemoteError: a remote process exiting prematurely.\nLast error:\nsocketProgress: Connection "
     "closed "
     "by remote peer j-node-1<5000>\n",
     -1},
    {"{\"rank\":2,\"exitCode\":1,\"host\":\"h\",\"message\":\"" LOST "\"}", 2},
    {TORN "json.decoder.JSONDecodeError: Expecting value: line 1 column 1 (char 0)\n", -1},
    {TORN "json.decoder.JSONDecodeError: Unterminated string starting at: line 1 column 12 (char 11)\n", -1},
    /* Another report before: its workers are not this one's. */
    {FAILURES WORKER(0, 3, "-9 (pid: 10)") NO_RECORD ROOT WORKER(1, 2, "1 (pid: 9)") RECORD(LOST) END FAILURES
     "  <NO_OTHER_FAILURES>\n" ROOT WORKER(0, 1, "1 (pid: 19)") RECORD(LOST) END,
     1},
};

#define TRACEBACK "Traceback (most recent call last):\n  File \"a.py\", line 2, in f\n    g()\n    ^^^\n"
#define THEIR_END                                                                                            \
    "W0101 09:57:00.1 40 torch/distributed/elastic/multiprocessing/api.py:9] Sending process 4 closing\n"    \
    "E0101 09:57:00.1 40 torch/distributed/elastic/multiprocessing/api.py:8] failed (exitcode: 1)\n"         \
    "Traceback (most recent call last):\n  File \"torchrun\", line 8, in <module>\n"                         \
    "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n" END                              \
    "a.py FAILED\n------\n" FAILURES "  <NO_OTHER_FAILURES>\n" ROOT WORKER(0, 1, "1 (pid: 9)") NO_RECORD END

/* The line that people are shown. */
static const struct {
    const char *message, *line;
} LINES[] = {
    {"", ""},
    {"\n \n", ""},
    {"loading\nValueError: no label\n\n", "ValueError: no label"},
    {FAILURES WORKER(0, 3, "1 (pid: 10)") NO_RECORD ROOT WORKER(1, 2, "1 (pid: 9)")
         RECORD("ValueError: no label") END,
     "ValueError: no label"},
    {"ValueError: no label\n" FAILURES ROOT WORKER(1, 2, "1 (pid: 9)") NO_RECORD END, ""},
    {FAILURES ROOT WORKER(
         0, 1, "2 (pid: 9)") "  error_file: <N/A>\n  traceback : none: see the rank's own output\n" END,
     ""},
    {FAILURES ROOT WORKER(
         0, 1, "-9 (pid: 9)") "  error_file: <N/A>\n  traceback : Signal 9 (SIGKILL) received by PID 9\n" END,
     "Signal 9 (SIGKILL) received by PID 9"},
    {"Traceback (most recent call last):\n" LOST "\n", LOST},
    {"{\"rank\":3,\"exitCode\":2,\"host\":\"h\",\"message\":\"a\\nb\\n\"}\nmore", "b"},
    {"{\"rank\":3,\"exitCode\":2,\"host\":\"h\",\"message\":\"a \\\"b\\\"\\tc\\u0007\\u00E4\\u0041\x1b\"}",
     "a \"b\" c \u00e4A"},
    {"{\"rank\":3,\"exitCode\":2,\"host\":\"h\",\"message\":\"\"}", ""},
    {"cut in a char\xc3", "cut in a char?"},
    /* What follows a traceback's last frame names the error, whatever comes behind it. */
    {TRACEBACK "ValueError: shapes differ:\nwant 8\n\ngot 7\n", "ValueError: shapes differ:"},
    {TRACEBACK "RuntimeError: CUDA error\nException raised from f (most recent call first):\nframe #0: g\n"
               "[rank0]:[W1125 09:57:00.1 40 x.cpp:1] Warning: destroy_process_group() was not called\n",
     "RuntimeError: CUDA error"},
    {TRACEBACK
     "KeyError: 'lr'\n\nDuring handling of the above exception, another exception occurred:\n\n" TRACEBACK
     "ValueError: no rate\n",
     "ValueError: no rate"},
    {"  File \"train.py\", line 1\n    def f(:\n          ^\nSyntaxError: invalid syntax\nmore\n",
     "SyntaxError: invalid syntax"},
    {"  + Exception Group " TRACEBACK
     "  | ExceptionGroup: two (2 sub-exceptions)\n  +-+---------------- 1 -----\n"
     "    | Traceback (most recent call last):\n    |   File \"a.py\", line 2, in f\n    | ValueError: b\n   "
     " +-----\n",
     "ValueError: b"},
    {" 45%|####  | 45/100\r 46%|####  | 46/100\rTraceback\r\n[default1]:[rank5]:   File \"a.py\", line 2, in "
     "f\n"
     "[default1]:[rank5]: ValueError: b\nb\n",
     "ValueError: b"},
    {"[ERROR]: no [1]: licence\n", "[ERROR]: no [1]: licence"},
    {" 45%|####  | 45/100\rERROR: no licence\r\n", "ERROR: no licence"},
    {"Fatal Python error: Segmentation fault\n\nThread 0x1 (most recent call first):\n  File \"a.py\", line "
     "3 in f1\n\n"
     "Extension modules: numpy (total: 1)\n",
     "Fatal Python error: Segmentation fault"},
    {"terminate called after throwing an instance of 'c10::DistBackendError'\n  what():  [Rank 0] the "
     "watchdog\nframe #1: f\n",
     "what():  [Rank 0] the watchdog"},
    {TRACEBACK "\x1b[31mValueError\x1b[0m: a\x1b[", "ValueError: a"},
    /* PyTorch's launcher: what its programs wrote stands above the block, and above its own traceback. */
    {TRACEBACK "ValueError: b\n" THEIR_END, "ValueError: b"},
    {"n of half a line\n" THEIR_END, "n of half a line"},
    {THEIR_END, ""},
    {"[rank1]:   File \"a.py\", line 2, in f\n[rank1]: ValueError: b\n[rank0]:   File \"a.py\", line 2, in "
     "f\n"
     "[rank0]: RuntimeError: Connection closed by peer\n" THEIR_END,
     "ValueError: b"},
};

static void test_lines(void **state)
{
    cleanup_arena struct arena a = {0};
    char longer[1001] = "";

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(LINES); i++)
        assert_string_equal(rootcause_line(LINES[i].message, "", &a), LINES[i].line);
    memset(longer, 'x', sizeof(longer) - 1);
    assert_int_equal(strlen(rootcause_line(longer, "", &a)), 256);
    assert_string_equal(rootcause_text("as\nit is", &a), "as\nit is");
    assert_string_equal(
        rootcause_text("{\"rank\":3,\"exitCode\":2,\"host\":\"h\",\"message\":\"a\\nb\"}", &a), "a\nb");
}

/* A block becomes a line that names the rank and how it ended; other messages stay. */
static const struct {
    const char *message, *brief;
} BRIEFS[] = {
    {FAILURES WORKER(0, 3, "-15 (pid: 10)") NO_RECORD ROOT WORKER(
         1, 2, "-9 (pid: 9)") "  error_file: <N/A>\n  traceback : Signal 9 (SIGKILL) received by PID 9\n" END,
     "rank 2: Signal 9 (SIGKILL) received by PID 9"},
    {"step 1\nstep 2\n" END "a.py FAILED\n------\n" FAILURES "  <NO_OTHER_FAILURES>\n" ROOT WORKER(
         0, 2, "-9 (pid: 9)") "  error_file: <N/A>\n  traceback : Signal 9 (SIGKILL) received by PID 9\n" END,
     "rank 2: Signal 9 (SIGKILL) received by PID 9"},
    {FAILURES ROOT WORKER(0, 2, "7 (pid: 9)") NO_RECORD END, "rank 2: exit code 7"},
    {"ERROR: no licence\n" THEIR_END, "rank 1: exit code 1: ERROR: no licence"},
    {TRACEBACK "ValueError: b\n" THEIR_END, "rank 1: exit code 1: ValueError: b"},
    {FAILURES ROOT WORKER(0, 2, "1 (pid: 9)") RECORD("ValueError: no label") END,
     "rank 2: ValueError: no label"},
    {ROOT "  exitcode  : -9 (pid: 7)", "exit code 137 (signal 9)"},
    {"", ""},
    {"one\nValueError: no label\n", "one\nValueError: no label\n"},
    {"{\"rank\":3,\"exitCode\":2,\"host\":\"h\",\"message\":\"a\\nb\"}", "a\nb"},
};

static void test_briefs(void **state)
{
    cleanup_arena struct arena a = {0};
    char longer[4096] = FAILURES ROOT WORKER(0, 2, "1 (pid: 9)") "  error_file: <N/A>\n  traceback : ";

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(BRIEFS); i++)
        assert_string_equal(rootcause_brief(BRIEFS[i].message, &a), BRIEFS[i].brief);
    for (int i = 0; i < 100; i++)
        strcat(longer, "words ");
    const char *brief = rootcause_brief(longer, &a);
    assert_in_range(strlen(brief), 240, 256);
    assert_true(strncmp(brief, "rank 2: words ", 14) == 0);
    assert_string_equal(brief + strlen(brief) - strlen(" words…"), " words…");
}

/* In the message of a hang its rank is named already. */
static void test_named_ranks(void **state)
{
    (void)state;
    assert_true(rootcause_names("no progress for 5 s: rank 3 is stopped (T)", 3));
    assert_true(
        rootcause_names("no progress for 5 s: all ranks wait for each other, rank 0 in a.py:1 f(): ", 0));
    assert_true(rootcause_names("no progress for 5 s: rank 31 did not reach rank 3", 3));
    assert_false(rootcause_names("no progress for 5 s: rank 31 is stopped (T)", 3));
    assert_false(rootcause_names("no progress for 5 s: all ranks wait in all_reduce 3", 0));
    assert_false(rootcause_names("ValueError: rank 3 has no data", 3));
}

/* The kubelet takes 2,048 bytes of the end of a log: half a line is nobody's. */
static void test_tail(void **state)
{
    cleanup_arena struct arena a = {0};
    char tail[2049] = "";

    (void)state;
    memset(tail, 'x', sizeof(tail) - 1 - strlen("\n" THEIR_END));
    strcpy(tail + strlen(tail), "\n" THEIR_END);
    assert_string_equal(rootcause_line(tail, "", &a), "");
    assert_string_equal(rootcause_line(tail, "KeyError: 'lr'\n", &a), "KeyError: 'lr'");
}

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
        assert_false(got.peer_lost);
    }
}

static void test_lost_peer(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(LOST_ROWS); i++) {
        struct rootcause got = {0};
        if (!rootcause_parse(LOST_ROWS[i].message, &got) || !got.peer_lost)
            fail_msg("row %zu: not told as a lost peer", i);
        assert_int_equal(got.exit_code, 1);
        assert_int_equal(got.rank, LOST_ROWS[i].rank);
    }
}

/* What is found is an end that a process can have. */
static void expect_an_end(const char *message)
{
    struct rootcause got = {0};

    if (!rootcause_parse(message, &got))
        return;
    assert_in_range(got.exit_code, 1, 255);
    assert_true(got.signal == 0 || got.exit_code == 128 + got.signal);
    assert_true(got.rank >= -1);
}

/* A message is cut anywhere: nothing is read beyond it (the copies are of its size), and no half of a report makes an end
 * that cannot be. */
static void test_every_cut(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(ROWS); i++) {
        size_t len = strlen(ROWS[i].message);
        for (size_t from = 0; from <= len; from++) {
            cleanup_free char *tail = strdup(ROWS[i].message + from);
            cleanup_free char *head = strndup(ROWS[i].message, from);
            cleanup_arena struct arena a = {0};
            (void)rootcause_line(tail, "", &a);
            (void)rootcause_line(head, "", &a);
            (void)rootcause_excerpt(tail, &a);
            (void)rootcause_excerpt(head, &a);
            expect_an_end(tail);
            expect_an_end(head);
        }
    }
}

#define SECRET "s3cr3tS3cr3tS3cr3t"

/* A rank's last line, with a secret or with a name that none follows. */
static const char *const BEFORE[] = {
    "", "Traceback\n", "no progress for 5 s: rank 3 (pid 7): S; last line: ", "a \\ \"", "{\"x\":[\""};
static const char *const SAID[] = {"Password:",
                                   "Enter passphrase: ",
                                   "password=\"",
                                   "{\"token\":",
                                   "-----BEGIN RSA PRIVATE KEY-----",
                                   "password=" SECRET,
                                   "\"api_key\": \"" SECRET "\"",
                                   "token='" SECRET,
                                   "Authorization: Bearer " SECRET,
                                   "-----BEGIN RSA PRIVATE KEY-----\n" SECRET,
                                   "GET https://me:" SECRET "@h/x",
                                   "hf_" SECRET,
                                   "mysql --password " SECRET};
static const char *const AFTER[] = {"",   "\n", " and more",        "\"}", "\",\"noProgress\":false}", "}",
                                    "\\", "]",  "\nValueError: bad"};

/* What the planner reads of a pod whose container ended with this message. */
static struct pod *pod_that_said(const char *message)
{
    cleanup_json cJSON *o = cJSON_Parse(
        "{\"metadata\":{\"name\":\"p\",\"namespace\":\"n\",\"uid\":\"u\"},\"spec\":{\"containers\":[{"
        "\"name\":"
        "\"c\"}]},\"status\":{\"phase\":\"Failed\",\"containerStatuses\":[{\"name\":\"c\",\"state\":{"
        "\"terminated\":{\"exitCode\":138}}}]}}");
    cJSON *list = cJSON_GetObjectItem(cJSON_GetObjectItem(o, "status"), "containerStatuses");
    cJSON *state = cJSON_GetObjectItem(cJSON_GetArrayItem(list, 0), "state");
    struct err err;

    cJSON_AddStringToObject(cJSON_GetObjectItem(state, "terminated"), "message", message);
    struct pod *p = pod_decode(o, NULL, &err);
    assert_non_null(p);
    return p;
}

/* A report of the launcher's with this in its message: all else of it is read, and the secret is gone. */
static void check_report(const char *said, bool signal, bool hung, const char *behind)
{
    cleanup_json cJSON *text = cJSON_CreateString(said);
    cleanup_free char *json = cJSON_PrintUnformatted(text);
    cleanup_arena struct arena a = {0};
    struct rootcause got = {0};
    char message[1024];

    snprintf(message, sizeof(message),
             "{\"rank\":3,\"exitCode\":%s,\"host\":\"wandb-token-3\",\"message\":%s%s}%s",
             signal ? "137,\"signal\":9" : "138", json, hung ? ",\"noProgress\":true" : "", behind);
    struct pod *p = pod_that_said(message);
    const bool found = rootcause_parse(p->training.message, &got);
    if (!found || got.rank != 3 || got.exit_code != (signal ? 137 : 138) || got.signal != (signal ? 9 : 0) ||
        got.no_progress != hung || strstr(p->training.message, SECRET) ||
        strstr(rootcause_text(p->training.message, &a), "\"rank\""))
        fail_msg("%s\nbecame %s", message, p->training.message);
    free(p);
}

static void test_reports_without_their_secrets(void **state)
{
    static const char *const FOREIGN[] = {
        "{\"rank\":3,\"exitCode\":1,\"host\":\"h\",\"message\":\"m\",\"api_key\":\"" SECRET "\"}",
        "{\"rank\":3,\"exitCode\":1,\"password\":\"" SECRET "\"}",
        ("{\"rank\":3,\"message\":\"password=" SECRET)};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(BEFORE) * ARRAY_LEN(SAID) * ARRAY_LEN(AFTER) * 4; i++) {
        char said[256];
        const size_t n = i / 4;
        snprintf(said, sizeof(said), "%s%s%s", BEFORE[n % ARRAY_LEN(BEFORE)],
                 SAID[n / ARRAY_LEN(BEFORE) % ARRAY_LEN(SAID)],
                 AFTER[n / ARRAY_LEN(BEFORE) / ARRAY_LEN(SAID)]);
        check_report(said, i & 1, i & 2, "\n");
    }
    check_report("boom", false, true, "\npassword=" SECRET "\n");
    for (size_t i = 0; i < ARRAY_LEN(FOREIGN); i++) {
        struct pod *p = pod_that_said(FOREIGN[i]);
        if (strstr(p->training.message, SECRET))
            fail_msg("%s\nbecame %s", FOREIGN[i], p->training.message);
        free(p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),      cmocka_unit_test(test_lines),
        cmocka_unit_test(test_briefs),    cmocka_unit_test(test_named_ranks),
        cmocka_unit_test(test_tail),      cmocka_unit_test(test_lost_peer),
        cmocka_unit_test(test_every_cut), cmocka_unit_test(test_reports_without_their_secrets)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
