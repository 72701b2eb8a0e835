/* test_traceback.c - the exception that a rank left stands whole in the launcher's block, and in the block of a launcher
 * that started it. */
#include "common/cleanup.h"
#include "crew.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* As PyTorch's @record writes it. */
#define LEAVES                                                                                               \
    "if [ $RANK = 1 ]; then echo '{\"message\": {\"message\": \"ValueError: \\u00e9\", \"extraInfo\": "      \
    "{\"py_callstack\": \"Traceback (most recent call last):\\n  File 1\\nValueError: \\u00e9\\n\", "        \
    "\"timestamp\": \"1700000000\"}}}' >$TORCHELASTIC_ERROR_FILE; exit 1; fi; sleep 1000"

static const char BLOCK[] = "  traceback : Traceback (most recent call last):\n    File 1\n"
                            "  ValueError: \xc3\xa9\n  \n=====";

static void expect_block(const struct run *r, int count)
{
    const char *p = buf_str(&r->err);

    for (; (p = strstr(p, BLOCK)); p++)
        count--;
    if (count)
        fail_msg("%d more blocks expected in: %s", count, buf_str(&r->err));
    assert_non_null(strstr(buf_str(&r->err), "  time      : 2023-11-1")); /* the file's, not ours */
}

static void test_block(void **state)
{
    static const char *const more[] = {"--tee=0", "--redirects=3", "--tee=3"};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(more); i++) {
        struct run r;
        assert_int_equal(run_once(RUN_ARGS("--nproc-per-node=2", "--log-dir=logs", more[i]), LEAVES, &r), 1);
        expect_block(&r, 1);
        assert_non_null(strstr(buf_str(&r.err), "/attempt_0/1/error.json\n"));
        run_release(&r);
    }
}

/* The inner one hands the file on to the outer one. */
static void test_launcher_under_a_launcher(void **state)
{
    struct run r;

    (void)state;
    assert_int_equal(run_once(RUN_ARGS("--nproc-per-node=1", run_torchrun, "--nproc-per-node=2"), LEAVES, &r),
                     1);
    expect_block(&r, 2);
    run_release(&r);
}

/* Among nodes the launcher reads the failed rank's file while the others are stopped: what one of these leaves then stands
 * in the block too. */
static void test_one_that_fails_while_it_is_stopped(void **state)
{
    static const char script[] =
        "if [ $RANK = 0 ]; then trap 'echo \"{\\\"message\\\": \\\"told at the end\\\"}\" "
        ">$TORCHELASTIC_ERROR_FILE; exit 1' TERM; "
        "touch ready; while :; do sleep 0.01; done; fi; until [ -e ready ]; do sleep 0.01; done; exit 3";
    struct crew c;

    (void)state;
    crew_open(&c, 1);
    c.conf = "last_call_timeout=0.01";
    crew_start_all(&c, RUN_ARGS("--nnodes=1:2", "--nproc-per-node=2", "--log-dir=logs"), script);
    assert_int_equal(crew_wait(&c, 0), 3);
    if (!strstr(buf_str(&c.runs[0].err), "/0/error.json\n  traceback : told at the end\n"))
        fail_msg("%s", buf_str(&c.runs[0].err));
    crew_release(&c);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_block),
        cmocka_unit_test(test_launcher_under_a_launcher),
        cmocka_unit_test(test_one_that_fails_while_it_is_stopped),
    };

    if (argc != 2 || !(run_torchrun = realpath(argv[1], NULL)))
        return 2;
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    free(run_torchrun);
    return failed;
}
