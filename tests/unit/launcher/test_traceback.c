/* test_traceback.c - the exception that a rank left stands whole in the launcher's block, and in the block of a launcher
 * that started it. */
#include "common/cleanup.h"
#include "run.h"

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

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_block),
        cmocka_unit_test(test_launcher_under_a_launcher),
    };

    if (argc != 2 || !(run_torchrun = realpath(argv[1], NULL)))
        return 2;
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    free(run_torchrun);
    return failed;
}
