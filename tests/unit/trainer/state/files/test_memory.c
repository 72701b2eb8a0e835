/* test_memory.c - out of memory at each allocation in turn while a checkpoint is written: the process ends as common/memory.h
 * promises, or the write fails with a word, or it succeeds. What lies in the folder is whole, whoever's it is, and the next
 * write is not disturbed by what was left.
 */
#include "common/json.h"
#include "test.h"

#include "failing.h"
#include "trainer/state/files/ckpt_dir.h"
#include "trainer/state/files/safetensors.h"
#include "values.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FEWEST_ALLOCATIONS = 20, KEEP = 2, FILE_BYTES = 1 << 20, CONFIG = 7, LINE_BYTES = 256 };

/* The two runs that share the folder: the marks of their names follow from these. */
static const char OURS[] = "ours", THEIRS[] = "theirs";

struct folder {
    char path[64];
    int64_t step;
    const char *run;
};

static int put_archive(void *ctx, const struct pt_sink *sink, struct err *err)
{
    cleanup_arena struct arena a = {0};
    struct pt_value root = values_all(&a);

    (void)ctx;
    return torch_zip_write(&root, "state", sink, err);
}

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

    snprintf(m.run_id, sizeof(m.run_id), "%s", f->run);
    failing_begin();
    {
        cleanup_ckpt_writer struct ckpt_writer w = {.tmp = ""};
        rc = ckpt_begin(&w, f->path, &m, &err) || ckpt_file(&w, "state.pt", put_archive, NULL, &err) ||
             ckpt_file(&w, "model.safetensors", put_tensors, NULL, &err) || ckpt_commit(&w, KEEP, &err);
    }
    return rc == 0 ? 1 : err.msg[0] ? 0 : -1;
}

static void save_untroubled(const char *path, int64_t step, const char *run)
{
    struct folder f = {.step = step, .run = run};
    struct failing_end end;

    snprintf(f.path, sizeof(f.path), "%s", path);
    failing_try(0, save, &f, &end);
    assert_int_equal(end.value, 1);
}

/* Whose step it is; every file has to be what its manifest says. */
static bool is_ours(const char *path)
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
    return strcmp(m.run_id, OURS) == 0;
}

/* "o1 o2 t3": the whole checkpoints in the folder by run and step. */
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
        at += (size_t)snprintf(out + at, LINE_BYTES - at, "%s%s%d", at ? " " : "", is_ours(file) ? "o" : "t",
                               (int)list.entry[i].step);
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

/* The other run has a checkpoint of the very step that ours is about to write. */
static struct folder make_folder(void)
{
    struct folder f = {.path = "/tmp/test_memory_XXXXXX", .step = 3, .run = OURS};

    assert_non_null(mkdtemp(f.path));
    save_untroubled(f.path, 1, OURS);
    save_untroubled(f.path, 2, OURS);
    save_untroubled(f.path, 3, THEIRS);
    return f;
}

static void remove_folder(const struct folder *f)
{
    char command[128];

    snprintf(command, sizeof(command), "rm -rf %s", f->path);
    assert_int_equal(system(command), 0);
}

static bool is_one_of(const char *text, const char *const *all)
{
    while (*all && strcmp(text, *all) != 0)
        all++;
    return *all != NULL;
}

static void test_a_checkpoint_is_whole_or_not_there(void **state)
{
    static const char *const BEFORE[] = {"o1 o2 t3", NULL};
    /* Which of two of the same step comes first is the file system's to say. */
    static const char *const AFTER[] = {"o2 t3 o3", "o2 o3 t3", NULL};
    static const char *const NOT_PRUNED[] = {"o1 o2 t3 o3", "o1 o2 o3 t3", NULL};
    struct failing_end untroubled, end = {.struck = true};
    long n = 0, exhausted = 0, failed = 0;

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
        failed += !end.exhausted && end.value == 0;
        bool done = is_one_of(line, AFTER) || is_one_of(line, NOT_PRUNED);
        if (!done && (!is_one_of(line, BEFORE) || (!end.exhausted && end.value == 1)))
            fail_msg("without allocation %ld: %s (value %d)", n, line, (int)end.value);
        assert_true(end.exhausted || end.value >= 0);
        assert_true(end.exhausted || end.kept <= untroubled.kept);
        save_untroubled(f.path, 3, OURS);
        describe(f.path, line);
        if (!is_one_of(line, AFTER) || has_leftovers(f.path))
            fail_msg("after the write behind allocation %ld: %s", n, line);
        remove_folder(&f);
    }
    print_message("%ld allocations; without one: %ld ended the process, %ld the write\n", n - 1, exhausted,
                  failed);
    assert_true(n > FEWEST_ALLOCATIONS && exhausted > 0 && failed > 0);
}

/* The system refuses to open its manifest: whose it is nobody knows, and so it is not ours to replace. */
static void test_what_cannot_be_opened_stays(void **state)
{
    char path[160];
    char line[LINE_BYTES];
    struct failing_end end;

    (void)state;
    struct folder f = make_folder();
    snprintf(path, sizeof(path), "%s/step-0000000003/manifest.json", f.path);
    assert_int_equal(rename(path, strcat(strcpy(line, path), "-kept")), 0);
    assert_int_equal(symlink("manifest.json", path), 0);
    failing_try(0, save, &f, &end);
    assert_int_equal(end.value, 1);
    assert_int_equal(rename(line, path), 0);
    describe(f.path, line);
    assert_true(strcmp(line, "o2 t3 o3") == 0 || strcmp(line, "o2 o3 t3") == 0);
    remove_folder(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_a_checkpoint_is_whole_or_not_there),
                                       cmocka_unit_test(test_what_cannot_be_opened_stays)};
    const int skip = failing_skip();

    json_memory_must(); /* as main does */
    return skip ? skip : cmocka_run_group_tests(tests, NULL, NULL);
}
