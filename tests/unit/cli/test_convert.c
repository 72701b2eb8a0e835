/* test_convert.c - kubectl ptj convert: golden cases in tests/golden/convert, and files that are no manifests.
 *
 * in.yaml is converted; out.yaml is its stdout, said.txt its stderr and exit status. A case that has a file launcher.txt is also
 * converted with --launcher Torchkeeper: launcher.yaml and launcher.txt are those of that. Without launcher.yaml the stdout is the
 * same as without the option. Such a case may lack out.yaml, where other cases show the same.
 *
 * usage: test_convert <kubectl-ptj>      GOLDEN_UPDATE=1 in the environment writes what is there
 */
#include "test.h"

#include "ptj.h"

#include "common/fsutil.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define GOLDEN TK_SOURCE_DIR "/tests/golden/convert"

static int differs(const char *name, const char *file, const char *got)
{
    cleanup_buf struct buf want = BUF_INIT(1 << 20);
    struct err err;

    if (getenv("GOLDEN_UPDATE")) {
        assert_int_equal(fs_write_atomic(file, got, strlen(got), &err), 0);
        return 0;
    }
    if (fs_read(file, &want, &err) == 0 && !strcmp(buf_str(&want), got))
        return 0;
    print_error("%s/%s: expected:\n%s\ngot:\n%s\n", name, file, buf_str(&want), got);
    return 1;
}

static bool has(const char *file)
{
    return access(file, F_OK) == 0;
}

static int says_other(const char *name, const char *file, const struct ptj_result *r)
{
    cleanup_buf struct buf text = BUF_INIT(1 << 20);
    struct err err;

    assert_int_equal(buf_printf(&text, &err, "%sexit %d\n", r->err, r->status), 0);
    return differs(name, file, buf_str(&text));
}

static int convert_case(struct ptj *p, const char *name)
{
    struct ptj_result plain = ptj_run(p, RUN("convert", "in.yaml"));
    int bad = says_other(name, "said.txt", &plain);

    if (has("out.yaml") || !has("launcher.txt"))
        bad += differs(name, "out.yaml", plain.out);
    if (has("launcher.txt")) {
        struct ptj_result r = ptj_run(p, RUN("convert", "in.yaml", "--launcher=Torchkeeper"));
        bad += says_other(name, "launcher.txt", &r);
        if (has("launcher.yaml"))
            bad += differs(name, "launcher.yaml", r.out);
        else
            assert_string_equal(r.out, plain.out);
        ptj_forget(&r);
    }
    ptj_forget(&plain);
    return bad;
}

static void test_golden(void **state)
{
    struct ptj *p = *state;
    struct dirent *e;
    int cases = 0, bad = 0;
    DIR *d = opendir(GOLDEN);

    assert_non_null(d);
    while ((e = readdir(d))) {
        char at[512];
        snprintf(at, sizeof(at), GOLDEN "/%s", e->d_name);
        if (e->d_name[0] == '.' || chdir(at) < 0)
            continue;
        bad += convert_case(p, e->d_name);
        cases++;
    }
    closedir(d);
    assert_int_equal(bad, 0);
    assert_true(cases >= 10);
}

static void test_files(void **state)
{
    struct ptj *p = *state;
    char empty[128];

    assert_int_equal(chdir(GOLDEN), 0);
    ptj_expect(p, RUN("convert", "trainjob-older/in.yaml", "trainjob/in.yaml"), 3, "name: small", "older");
    ptj_expect(p, RUN("convert", "none.yaml"), 1, NULL, "none.yaml");
    ptj_expect(p, RUN("convert", "/dev/null"), 1, NULL, "found none");
    ptj_expect(p, RUN("convert", p->dir), 1, NULL, p->dir);
    snprintf(empty, sizeof(empty), "%s/empty.yaml", p->dir);
    ptj_script(empty, "apiVersion: kubeflow.org/v1\nkind: PyTorchJob\nmetadata: {name: x}\n"
                      "spec: {pytorchReplicaSpecs: {}}\n");
    ptj_expect(p, RUN("convert", empty), 1, NULL, "spec.replicaSpecs: expected 1..16 items, got none");
    ptj_expect(p, RUN("convert"), 2, NULL, "expected FILE...");
    ptj_expect(p, RUN("convert", "trainjob/in.yaml", "--launcher=Mine"), 2, NULL,
               "--launcher: expected Image or Torchkeeper, got \"Mine\"");
    ptj_expect(p, RUN("convert", "trainjob/in.yaml", "--launcher=Image"), 0, "name: small",
               "--launcher Torchkeeper");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_golden, ptj_setup, ptj_teardown),
        cmocka_unit_test_setup_teardown(test_files, ptj_setup, ptj_teardown),
    };

    if (argc != 2)
        return 2;
    ptj_program = argv[1];
    return cmocka_run_group_tests(tests, NULL, NULL);
}
