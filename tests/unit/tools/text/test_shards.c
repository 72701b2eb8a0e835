/* test_shards.c - tokens in files of llm.c's format, as the reader of tokens finds them. */
#include "../../trainer/data/files.h"
#include "test.h"

#include "tools/text/shards.h"

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

static int setup(void **state)
{
    return files_setup(state, "t");
}

/* 0, 1, 2, ... */
static int write_shards(const struct files_fixture *f, int64_t shard, int64_t val, int n, struct err *err)
{
    cleanup_shards struct shards s = {.file = {.fd = -1}};
    const struct shards_options o = {f->path, shard, val};

    if (shards_make(&s, &o, err))
        return -1;
    for (int i = 0; i < n; i++) {
        uint16_t token = (uint16_t)i;
        if (shards_put(&s, &token, 1, err))
            return -1;
    }
    return shards_end(&s, err);
}

static void expect(const struct files_fixture *f, const char *pattern, size_t files, int first, int n)
{
    char path[PATH_MAX + 32];
    float x[1];
    int32_t next[1];
    struct err err;

    snprintf(path, sizeof(path), "%s/%s", f->folder, pattern);
    cleanup_tokens struct tokens *t = tokens_open(path, 1, &err);
    if (!t)
        fail_msg("%s", err.msg);
    assert_int_equal(tokens_files(t), files);
    assert_int_equal(tokens_count(t), n);
    assert_int_equal(tokens_window(t, 0, 1 << 16, x, next, &err), 0);
    assert_true(x[0] == (float)first && next[0] == first + 1);
    assert_int_equal(tokens_window(t, tokens_windows(t) - 1, 1 << 16, x, next, &err), 0);
    assert_int_equal(next[0], first + n - 1);
}

static size_t entries(const struct files_fixture *f)
{
    char pattern[PATH_MAX + 8];
    glob_t found = {0};

    snprintf(pattern, sizeof(pattern), "%s/*", f->folder);
    (void)glob(pattern, 0, NULL, &found);
    size_t n = found.gl_pathc;
    globfree(&found);
    return n;
}

static void so_many_in_each(void **state)
{
    struct files_fixture *f = *state;
    struct err err;

    assert_int_equal(write_shards(f, 60000, 0, 60000, &err), 0);
    expect(f, "t_000000.bin", 1, 0, 60000); /* and none that is empty behind it */
    assert_int_equal(entries(f), 1);
    files_remove(f->folder);
    assert_int_equal(mkdir(f->folder, 0700), 0);
    assert_int_equal(write_shards(f, 4, 0, 10, &err), 0);
    expect(f, "t_00000?.bin", 3, 0, 10);
    expect(f, "t_000001.bin", 1, 4, 4);
    expect(f, "t_000002.bin", 1, 8, 2);
    assert_int_equal(entries(f), 3);
}

static void the_first_validate(void **state)
{
    struct files_fixture *f = *state;
    struct err err;

    assert_int_equal(write_shards(f, 4, 6, 14, &err), 0);
    expect(f, "t_val_*.bin", 2, 0, 6);
    expect(f, "t_train_*.bin", 2, 6, 8);
    expect(f, "t_train_000000.bin", 1, 6, 4);
}

static void larger_than_the_buffer(void **state)
{
    struct files_fixture *f = *state;
    cleanup_shards struct shards s = {.file = {.fd = -1}};
    const struct shards_options o = {f->path, TOKENS_SHARD_MAX, 0};
    uint16_t block[1000];
    struct err err;

    for (int i = 0; i < 1000; i++)
        block[i] = (uint16_t)i;
    assert_int_equal(shards_make(&s, &o, &err), 0);
    for (int i = 0; i < 300; i++)
        assert_int_equal(shards_put(&s, block, 1000, &err), 0);
    assert_int_equal(entries(f), 1); /* a temporary */
    assert_int_equal(shards_end(&s, &err), 0);
    char path[PATH_MAX + 32];
    float x[999];
    int32_t next[999];
    snprintf(path, sizeof(path), "%s_000000.bin", f->path);
    cleanup_tokens struct tokens *t = tokens_open(path, 999, &err);
    assert_non_null(t);
    assert_int_equal(tokens_count(t), 300000);
    assert_int_equal(tokens_window(t, 299, 1000, x, next, &err), 0);
    for (int i = 0; i < 999; i++)
        assert_true(x[i] == (float)((299 * 999 + i) % 1000));
}

static void others_files_are_left_alone(void **state)
{
    struct files_fixture *f = *state;
    struct err err;

    assert_int_equal(write_shards(f, 4, 0, 2, &err), 0);
    assert_int_equal(write_shards(f, 4, 3, 9, &err), -1);
    assert_int_equal(err.kind, ERR_INVALID);
    assert_non_null(strstr(err.msg, "t_000000.bin: is there already"));
    expect(f, "*", 1, 0, 2);
}

/* A prefix is no pattern. */
static void whatever_their_folder_is_called(void **state)
{
    struct files_fixture *f = *state;
    struct err err;

    snprintf(f->path, sizeof(f->path), "%s/[a]*\\?", f->folder);
    assert_int_equal(mkdir(f->path, 0700), 0);
    snprintf(f->path, sizeof(f->path), "%s/[a]*\\?/t", f->folder);
    assert_int_equal(write_shards(f, 4, 0, 2, &err), 0);
    assert_int_equal(write_shards(f, 4, 0, 3, &err), -1);
    assert_non_null(strstr(err.msg, "t_000000.bin: is there already"));
}

static void a_failure_leaves_nothing(void **state)
{
    struct files_fixture *f = *state;
    struct err err;

    snprintf(f->path, sizeof(f->path), "%s/none/t", f->folder);
    assert_int_equal(write_shards(f, 4, 0, 2, &err), -1);
    assert_int_equal(err.kind, ERR_FATAL);
    snprintf(f->path, sizeof(f->path), "%s/t", f->folder);
    {
        cleanup_shards struct shards s = {.file = {.fd = -1}};
        const struct shards_options o = {f->path, 9, 0};
        assert_int_equal(shards_make(&s, &o, &err), 0);
        assert_int_equal(shards_put(&s, (const uint16_t[]){1, 2}, 2, &err), 0);
    }
    assert_int_equal(entries(f), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(so_many_in_each, setup, files_teardown),
        cmocka_unit_test_setup_teardown(the_first_validate, setup, files_teardown),
        cmocka_unit_test_setup_teardown(larger_than_the_buffer, setup, files_teardown),
        cmocka_unit_test_setup_teardown(others_files_are_left_alone, setup, files_teardown),
        cmocka_unit_test_setup_teardown(whatever_their_folder_is_called, setup, files_teardown),
        cmocka_unit_test_setup_teardown(a_failure_leaves_nothing, setup, files_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
