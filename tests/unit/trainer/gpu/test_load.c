/* test_load.c - a plug-in that is missing, damaged, no plug-in, or another build's is told apart in one line. */
#include "trainer/gpu/load.h"

#include "test.h"

#include <stdio.h>
#include <string.h>

static const char *plugins; /* the folder of those made for this test */

static void expect(const char *dir, enum err_kind kind, const char *part)
{
    struct err err = {0};

    assert_null(gpu_plugin_load(dir, &err));
    assert_int_equal(err.kind, kind);
    if (!strstr(err.msg, part))
        fail_msg("\"%s\" does not say \"%s\"", err.msg, part);
}

static void test_missing(void **state)
{
    (void)state;
    expect("/nonexistent", ERR_NOT_FOUND, "/nonexistent/libtk_cuda.so");
}

/* The test program's folder has none. */
static void test_missing_beside_program(void **state)
{
    (void)state;
    expect(NULL, ERR_NOT_FOUND, "this build has no GPU support");
}

static void test_not_a_library(void **state)
{
    char dir[] = "/tmp/gpu-load-XXXXXX";
    char path[64];

    (void)state;
    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof(path), "%s/%s", dir, GPU_PLUGIN_FILE);
    cleanup_fclose FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs("not an object", f);
    fflush(f);
    expect(dir, ERR_INVALID, "cannot be loaded");
    unlink(path);
    rmdir(dir);
}

static void test_no_plugin(void **state)
{
    char dir[512];

    (void)state;
    snprintf(dir, sizeof(dir), "%s/no_symbol", plugins);
    expect(dir, ERR_INVALID, GPU_PLUGIN_SYMBOL);
}

static void test_other_build(void **state)
{
    char dir[512];

    (void)state;
    snprintf(dir, sizeof(dir), "%s/other_abi", plugins);
    expect(dir, ERR_INVALID, "another build");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_missing),       cmocka_unit_test(test_missing_beside_program),
        cmocka_unit_test(test_not_a_library), cmocka_unit_test(test_no_plugin),
        cmocka_unit_test(test_other_build),
    };

    plugins = argc > 1 ? argv[1] : "";
    return cmocka_run_group_tests(tests, NULL, NULL);
}
