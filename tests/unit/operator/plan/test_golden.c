/* test_golden.c - every folder of tests/golden/plan is a case. PLAN_GOLDEN_UPDATE=1 writes want.yaml anew. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/fsutil.h"
#include "plancase.h"
#include "yamldoc.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>

#define GOLDEN TK_SOURCE_DIR "/tests/golden/plan"

enum { CASES_MAX = 512, CASES_MIN = 200, WANT_MAX = 1 << 20 };

static void show(const char *title, const cJSON *doc)
{
    cleanup_buf struct buf text = BUF_INIT(WANT_MAX);
    struct err err;

    if (yamldoc_write(doc, &text, &err) == 0)
        print_error("--- %s\n%s", title, buf_str(&text));
}

static void run_case(void **state)
{
    const char *name = *state;
    struct err err = {0};
    char path[512];

    snprintf(path, sizeof(path), GOLDEN "/%s", name);
    cleanup_json cJSON *got = plancase_run(path, &err);
    if (!got)
        fail_msg("%s: %s", name, err.msg);
    snprintf(path, sizeof(path), GOLDEN "/%s/want.yaml", name);
    if (getenv("PLAN_GOLDEN_UPDATE")) {
        cleanup_buf struct buf text = BUF_INIT(WANT_MAX);
        assert_int_equal(yamldoc_write(got, &text, &err), 0);
        assert_int_equal(fs_write_atomic(path, buf_str(&text), text.len, &err), 0);
        return;
    }
    cleanup_json cJSON *want = yamldoc_read(path, &err);
    if (!want)
        fail_msg("%s: %s", name, err.msg);
    if (!cJSON_Compare(got, want, true)) {
        show("want", want);
        show("got", got);
        fail_msg("%s: the plan differs from want.yaml", name);
    }
}

static int is_case(const struct dirent *d)
{
    return d->d_name[0] != '.' && d->d_name[0] != '_';
}

int main(void)
{
    static struct CMUnitTest tests[CASES_MAX];
    struct dirent **names = NULL;
    int n = scandir(GOLDEN, &names, is_case, alphasort);

    if (n < CASES_MIN || n > CASES_MAX) {
        fprintf(stderr, "%s: expected %d..%d cases, found %d\n", GOLDEN, CASES_MIN, CASES_MAX, n);
        return 1;
    }
    for (int i = 0; i < n; i++)
        tests[i] = (struct CMUnitTest){names[i]->d_name, run_case, NULL, NULL, names[i]->d_name};
    int failed = _cmocka_run_group_tests("golden plans", tests, (size_t)n, NULL, NULL);
    for (int i = 0; i < n; i++)
        free(names[i]);
    free(names);
    return failed;
}
