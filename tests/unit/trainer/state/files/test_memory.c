/* test_memory.c - out of memory at each allocation in turn while a checkpoint is written: the process ends as common/memory.h
 * promises, or the write fails with a word, or it succeeds. What lies in the folder is whole, and the next
 * write is not disturbed by what was left.
 */
#include "common/json.h"
#include "scratch.h"
#include "test.h"

#include "failing.h"
#include "trainer/state/files/ckpt_dir.h"
#include "trainer/state/files/safetensors.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FEWEST_ALLOCATIONS = 6, KEEP = 2, FILE_BYTES = 1 << 20, CONFIG = 7, LINE_BYTES = 256 };

static const char RUN[] = "run";

struct folder {
    char path[64];
    int64_t step;
};

static int put_tensors(void *ctx, const struct pt_sink *sink, struct err *err)
{
    static const float numbers[6] = {1, 2, 3, 4, 5, 6};
    const struct tensor_row rows[] = {
        {"layer.weight", {.dtype = PT_F32, .dims = 2, .dim = {2, 3}, .data = numbers}}};
    const struct tensor_list list = {rows, 1};

    (void)ctx;
    return safetensors_write(&list, sink, err);
}

/* In the child: a checkpoint. 1: it is written; 0: an error with words; -1: one without. */
static int64_t save(void *ctx)
{
    const struct folder *f = ctx;
    struct manifest m = {.step = f->step, .config = CONFIG};
    struct err err = {0};
    int rc;

    snprintf(m.run_id, sizeof(m.run_id), "%s", RUN);
    failing_begin();
    {
        cleanup_ckpt_writer struct ckpt_writer w = {.tmp = ""};
        rc = ckpt_begin(&w, f->path, &m, NULL, &err) ||
             ckpt_file(&w, "optim.safetensors", put_tensors, NULL, &err) ||
             ckpt_file(&w, "model.safetensors", put_tensors, NULL, &err) || ckpt_commit(&w, KEEP, &err);
    }
    return rc == 0 ? 1 : err.msg[0] ? 0 : -1;
}

static void save_untroubled(const char *path, int64_t step)
{
    struct folder f = {.step = step};
    struct failing_end end;

    snprintf(f.path, sizeof(f.path), "%s", path);
    failing_try(0, save, &f, &end);
    assert_int_equal(end.value, 1);
}

/* Every file has to match its manifest. */
static void expect_whole(const char *path)
{
    struct manifest m;
    struct err err;

    if (ckpt_manifest(path, &m, &err))
        fail_msg("%s: %s", path, err.msg);
    assert_int_equal(m.files, 2);
    for (int i = 0; i < m.files; i++) {
        cleanup_buf struct buf bytes = BUF_INIT(FILE_BYTES);
        if (ckpt_read(path, &m, m.file[i].name, &bytes, &err))
            fail_msg("%s", err.msg);
    }
}

/* "1 2 3": the steps of the checkpoints in the folder. */
static void describe(const char *path, char out[static LINE_BYTES])
{
    cleanup_arena struct arena a = {0};
    struct ckpt_list list;
    struct err err;
    size_t at = 0;

    assert_int_equal(ckpt_list(path, &a, &list, &err), 0);
    out[0] = '\0';
    for (size_t i = list.len; i-- > 0;) {
        char file[PATH_MAX];
        assert_int_equal(ckpt_path(file, path, list.entry[i].name, &err), 0);
        expect_whole(file);
        at += (size_t)snprintf(out + at, LINE_BYTES - at, "%s%d", at ? " " : "", (int)list.entry[i].step);
    }
}

static bool has_leftovers(const char *path)
{
    cleanup_closedir DIR *dir = opendir(path);
    bool found = false;

    assert_non_null(dir);
    for (const struct dirent *e; (e = readdir(dir));)
        found = found || strncmp(e->d_name, ".tmp-", 5) == 0;
    return found;
}

static struct folder make_folder(void)
{
    struct folder f = {.step = 3};

    snprintf(f.path, sizeof(f.path), "%s/test_memory_XXXXXX", scratch_home());
    assert_non_null(mkdtemp(f.path));
    save_untroubled(f.path, 1);
    save_untroubled(f.path, 2);
    return f;
}

static void remove_folder(const struct folder *f)
{
    char command[128];

    snprintf(command, sizeof(command), "rm -rf %s", f->path);
    assert_int_equal(system(command), 0);
}

static void test_a_checkpoint_is_whole_or_not_there(void **state)
{
    struct failing_end untroubled, end = {.struck = true};
    long n = 0, exhausted = 0;

    (void)state;
    struct folder first = make_folder();
    failing_try(0, save, &first, &untroubled);
    assert_int_equal(untroubled.value, 1);
    remove_folder(&first);
    while (end.struck) {
        struct folder f = make_folder();
        char line[LINE_BYTES];
        failing_try(++n, save, &f, &end);
        describe(f.path, line);
        exhausted += end.exhausted;
        bool done = strcmp(line, "2 3") == 0 || strcmp(line, "1 2 3") == 0; /* or not pruned */
        if (!done && (strcmp(line, "1 2") != 0 || (!end.exhausted && end.value == 1)))
            fail_msg("without allocation %ld: %s (value %d)", n, line, (int)end.value);
        assert_true(end.exhausted || end.value >= 0);
        assert_true(end.exhausted || end.kept <= untroubled.kept);
        save_untroubled(f.path, 3);
        describe(f.path, line);
        if (strcmp(line, "2 3") != 0 || has_leftovers(f.path))
            fail_msg("after the write behind allocation %ld: %s", n, line);
        remove_folder(&f);
    }
    print_message("%ld allocations; without one: %ld ended the process\n", n - 1, exhausted);
    assert_true(n > FEWEST_ALLOCATIONS && exhausted > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_a_checkpoint_is_whole_or_not_there)};
    const int skip = failing_skip();

    json_memory_must(); /* as main does */
    return skip ? skip : cmocka_run_group_tests(tests, NULL, NULL);
}
