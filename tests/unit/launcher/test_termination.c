/* test_termination.c - the termination message for Kubernetes after a failed run: its bytes, its file, and when it is written. */
#include "launcher/termination.h"

#include "common/cleanup.h"
#include "common/fsutil.h"
#include "run.h"

#include <cjson/cJSON.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define ENV "PTJ_TERMINATION_LOG"

static void encode(const struct exit_worker *w, const char *tail, struct buf *out)
{
    buf_clear(out);
    termination_encode(w, "node-a", tail, out);
    assert_in_range(out->len, 1, TERMINATION_BYTES);
}

static void test_bytes(void **state)
{
    static const struct {
        int status;
        const char *message, *tail, *want; /* from the message on */
    } rows[] = {
        {2 << 8, NULL, "a\ntrainer: --epoch: unknown option\n", "a\\ntrainer: --epoch: unknown option"},
        {9, NULL, "", ""},
        {1 << 8, NULL, " \"q\" \\ \t\x1b[0m\x7f \xc3\xa4\r\n\n", " \\\"q\\\" \\\\    \xc3\xa4"},
        /* Colours, a cursor that moves, a link, a sequence that is cut; bytes that are no UTF-8. */
        {1 << 8, NULL, "\x1b[38;5;196m\x1b[1mRuntimeError\x1b[0m: \x1b[2Kbad\x1b[", "RuntimeError: bad"},
        {1 << 8, NULL, "see \x1b]8;;http://a/b\x07here\x1b]8;;\x1b\\ or \x1b(Bthere", "see here or Bthere"},
        {1 << 8, NULL, "a \x1bPcut\nRuntimeError: \x1b]0;cut\nbad", "a \\nRuntimeError: \\nbad"},
        {1 << 8, NULL, "Fehler: \xe4\xf6\xfc, \xc3\xa4 \xe2\x82 \xed\xa0\x80",
         "Fehler: ???, \xc3\xa4 ?? ???"},
        {1 << 8, "no label", "\x1b[31mValueError: no \x1b[1mlabel\x1b[0m\nWarning\n", "ValueError: no label"},
        /* The line that has what the rank left in its error file, and nothing behind it. */
        {1 << 8, "no label", "ValueError: no label\nWarning: group not destroyed\n", "ValueError: no label"},
        {1 << 8, "no label\nat 7\n", "ValueError: no label\nWarning\n", "ValueError: no label"},
        {1 << 8, "no label\n", "Warning\n", "no label"},
        {1 << 8, "\n", "Warning\n", "Warning"},
        /* The tail began inside a character. */
        {1 << 8, NULL, "\xa4x", "x"},
    };
    cleanup_buf struct buf out = BUF_INIT(TERMINATION_BYTES);
    char want[400];

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct exit_worker w = {.rank = 3, .status = rows[i].status, .message = rows[i].message};
        encode(&w, rows[i].tail, &out);
        snprintf(want, sizeof(want), "{\"rank\":3,\"exitCode\":%s,\"host\":\"node-a\",\"message\":\"%s\"}\n",
                 w.status == 9        ? "137,\"signal\":9"
                 : w.status == 2 << 8 ? "2"
                                      : "1",
                 rows[i].want);
        assert_string_equal(buf_str(&out), want);
    }
}

/* Of a message that is too long its end stays: whole lines, else whole characters. */
static void test_bound(void **state)
{
    const struct exit_worker w = {.rank = 1023, .status = 1 << 8};
    cleanup_buf struct buf out = BUF_INIT(TERMINATION_BYTES);
    char tail[4001];

    (void)state;
    for (size_t step = 1; step < 4; step++)
        for (size_t len = 900; len < 1100; len++) {
            for (size_t i = 0; i < len; i++)
                tail[i] = step == 3 ? "\xe2\x82\xac"[i % 3] : step == 2 ? '"' : i % 10 ? 'x' : '\n';
            tail[len - len % 3] = '\0';
            encode(&w, tail, &out);
            cJSON *j = cJSON_ParseWithLength(out.data, out.len);
            const cJSON *message = cJSON_GetObjectItemCaseSensitive(j, "message");
            assert_true(cJSON_IsString(message));
            const char *m = message->valuestring;
            size_t have = strlen(m), all = strlen(tail);
            all -= tail[all - 1] == '\n';
            assert_memory_equal(m, tail + all - have, have);
            if (step == 1)
                assert_true(have == all || (have > 850 && tail[all - have - 1] == '\n'));
            else
                assert_true(have > 470 && (step == 2 || have % 3 == 0));
            cJSON_Delete(j);
        }
}

/* ---- the file */

#define FAILS                                                                                                \
    "echo of $RANK >&2; [ $RANK = 1 ] && { echo loading >&2; echo no data >&2; exit 3; }; exec sleep 1000"

static void test_failed_rank(void **state)
{
    char host[65] = "", want[200];
    struct run r;

    (void)state;
    setenv(ENV, "report", 1);
    assert_int_equal(run_once(RUN_ARGS("--nproc-per-node=2"), FAILS, &r), 3);
    gethostname(host, sizeof(host) - 1);
    snprintf(want, sizeof(want),
             "{\"rank\":1,\"exitCode\":3,\"host\":\"%s\",\"message\":\"of 1\\nloading\\nno data\"}\n", host);
    run_expect_file(&r, "report", want);
    run_says(&r.err, "no data\n");
    run_release(&r);
    /* A rank that teed is no less heard. */
    assert_int_equal(run_once(RUN_ARGS("--nproc-per-node=2", "--tee=3"), FAILS, &r), 3);
    run_expect_file(&r, "report", want);
    run_says(&r.err, "[default1]:no data\n");
    run_release(&r);
}

/* What the ranks write reaches the console as it is: no line is waited for, none is made. */
static void test_bytes_pass_unchanged(void **state)
{
    struct run r;

    (void)state;
    setenv(ENV, "report", 1);
    run_start(&r, RUN_ARGS("--nproc-per-node=1"),
              "printf '\\r 50%%' >&2; until [ -e on ]; do sleep 0.01; done; "
              "head -c 300000 /dev/zero >&2; printf 'end' >&2");
    char path[200];
    struct err err;
    snprintf(path, sizeof(path), "%s/err", r.dir);
    for (bool seen = false; !seen;) {
        cleanup_buf struct buf now = BUF_INIT(1 << 20);
        seen = fs_read(path, &now, &err) == 0 && now.len == 5 && memcmp(now.data, "\r 50%", 5) == 0;
    }
    run_touch(&r, "on");
    assert_int_equal(run_wait(&r), 0);
    assert_int_equal(r.err.len, 5 + 300000 + 3);
    assert_memory_equal(r.err.data + r.err.len - 3, "end", 3);
    assert_false(run_has_file(&r, "report"));
    run_release(&r);
}

static void test_no_report(void **state)
{
    static const struct {
        const char *path, *script;
        int code;
    } rows[] = {
        {NULL, FAILS, 3}, /* no request */
        {"", FAILS, 3},
        {"report", "echo fine >&2; exit 0", 0},
        {"report", "exit 3", 3}, /* no report: the end of the log shows more */
        {"report", "kill -TERM $PPID; sleep 1000", 143},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct run r;
        unsetenv(ENV);
        if (rows[i].path)
            setenv(ENV, rows[i].path, 1);
        assert_int_equal(run_once(RUN_ARGS("--nproc-per-node=2"), rows[i].script, &r), rows[i].code);
        assert_false(run_has_file(&r, "report"));
        assert_null(strstr(buf_str(&r.err), "no report"));
        run_release(&r);
    }
}

/* Whatever and however much was printed before, the last line is there. */
static void test_end_of_much(void **state)
{
    cleanup_buf struct buf text = BUF_INIT(1 << 16);
    struct run r;

    (void)state;
    setenv(ENV, "report", 1);
    assert_int_equal(run_once(RUN_ARGS("--nproc-per-node=1"),
                              "{ seq 30000; head -c 100 /dev/zero; echo; echo no data; } >&2; exit 3", &r),
                     3);
    run_read(&r, "report", &text);
    assert_in_range(text.len, 900, TERMINATION_BYTES);
    run_says(&text, "\\n29999\\n30000\\n");
    run_says(&text, "\\nno data\"}\n");
    run_release(&r);
}

/* It is the launcher's last word: not written before a restart, and not by a launcher that a rank starts. */
static void test_final_exit_only(void **state)
{
    cleanup_buf struct buf text = BUF_INIT(1 << 16);
    struct run r;

    (void)state;
    setenv(ENV, "report", 1);
    assert_int_equal(run_once(RUN_ARGS("--max-restarts=1"),
                              "[ -e report ] && exit 9; [ -n \"$" ENV "\" ] && exit 8; "
                              "echo try $TORCHELASTIC_RESTART_COUNT >&2; exit 4",
                              &r),
                     4);
    run_read(&r, "report", &text);
    run_says(&text, "\"message\":\"try 1\"");
    run_release(&r);
}

/* What stands in the file stays; what is no plain file is left alone. The exit code is the rank's in any case. */
static void test_what_is_there_stays(void **state)
{
    static const struct {
        const char *make, *check;
        bool told;
    } rows[] = {
        {"echo mine >report", "[ \"$(cat report)\" = mine ]", false},
        {"ln -s target report", "[ ! -e target ]", true},
        {"echo -n >target; ln -s target report", "[ ! -s target ]", true},
        {"mkfifo report", "[ -p report ]", true},
        {"mkdir report", "[ -d report ]", true},
        {"rm -f report", "[ -s report ]", false},
        {": >report", "[ -s report ]", false},
    };

    (void)state;
    setenv(ENV, "report", 1);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct run r;
        char script[200], check[300];
        snprintf(script, sizeof(script), "%s; echo no data >&2; exit 5", rows[i].make);
        assert_int_equal(run_once(RUN_ARGS("--nproc-per-node=1"), script, &r), 5);
        snprintf(check, sizeof(check), "cd %s && %s", r.dir, rows[i].check);
        assert_int_equal(system(check), 0);
        const char *line = strstr(buf_str(&r.err), "torchrun: no report (" ENV "): ");
        assert_int_equal(line != NULL, rows[i].told);
        assert_null(line ? strstr(line + 1, "torchrun: no report") : NULL);
        run_release(&r);
    }
    setenv(ENV, "/dev/null", 1);
    run_expect(RUN_ARGS("--nproc-per-node=1"), "echo no data >&2; exit 5", 5,
               "(" ENV "): /dev/null: expected a regular file\n");
    setenv(ENV, "/no/such/folder/report", 1);
    run_expect(RUN_ARGS("--nproc-per-node=1"), "echo no data >&2; exit 5", 5,
               "cannot write /no/such/folder/report: No such file");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bytes),       cmocka_unit_test(test_bound),
        cmocka_unit_test(test_failed_rank), cmocka_unit_test(test_bytes_pass_unchanged),
        cmocka_unit_test(test_no_report),   cmocka_unit_test(test_final_exit_only),
        cmocka_unit_test(test_end_of_much), cmocka_unit_test(test_what_is_there_stays),
    };
    return run_main(argc, argv, tests, ARRAY_LEN(tests));
}
