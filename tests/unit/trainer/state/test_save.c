/* test_save.c - the file is complete and has its name; after any failure the old file is unchanged and nothing else is left. */
#include "common/fsutil.h"
#include "files/values.h"
#include "test.h"
#include "trainer/state/files/torch_zip.h"
#include "trainer/state/save.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

enum { FILE_MAX = 1 << 16 };

struct fixture {
    char folder[2048];
    char path[4096];
    struct arena arena;
    struct tensor_list value;
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    const char *base = getenv("TMPDIR");

    if (!f)
        return -1;
    snprintf(f->folder, sizeof(f->folder), "%s/test_save.XXXXXX", base ? base : "/tmp");
    if (!mkdtemp(f->folder))
        return -1;
    snprintf(f->path, sizeof(f->path), "%s/model.pt", f->folder);
    f->value = values_all(&f->arena);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    char command[4096];

    snprintf(command, sizeof(command), "rm -rf '%s'", f->folder);
    int rc = system(command);
    arena_release(&f->arena);
    free(f);
    return rc;
}

static int to_buf(void *ctx, const void *bytes, size_t len, struct err *err)
{
    return buf_append(ctx, bytes, len, err);
}

static void assert_file(const char *path, const struct tensor_list *v, const char *name)
{
    cleanup_buf struct buf want = BUF_INIT(FILE_MAX);
    cleanup_buf struct buf got = BUF_INIT(FILE_MAX);
    struct err err = {0};

    assert_int_equal(torch_zip_write(v, name, &(struct pt_sink){to_buf, &want}, &err), 0);
    assert_int_equal(fs_read(path, &got, &err), 0);
    assert_int_equal(got.len, want.len);
    assert_memory_equal(got.data, want.data, want.len);
}

static int files_in(const char *folder)
{
    cleanup_closedir DIR *dir = opendir(folder);
    int n = 0;

    assert_non_null(dir);
    for (const struct dirent *e = readdir(dir); e; e = readdir(dir))
        n += e->d_name[0] != '.' || (e->d_name[1] && e->d_name[1] != '.');
    return n;
}

static void test_whole(void **state)
{
    static const char *const cases[][2] = {
        {"model.pt", "model"}, {"a.b.pt", "a.b"}, {"plain", "plain"}, {".hidden", ".hidden"}};
    struct fixture *f = *state;
    const struct tensor_list other = values_state(&f->arena);
    struct err err = {0};

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        snprintf(f->path, sizeof(f->path), "%s/%s", f->folder, cases[i][0]);
        assert_int_equal(save_tensors(f->path, &f->value, &err), 0);
        assert_file(f->path, &f->value, cases[i][1]);
        assert_int_equal(save_tensors(f->path, &other, &err), 0);
        assert_file(f->path, &other, cases[i][1]);
        assert_int_equal(files_in(f->folder), i + 1);
    }
}

static void limit_files(rlim_t bytes)
{
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &(struct rlimit){bytes, RLIM_INFINITY}), 0);
}

/* A disk that fills up at any point of the new file. */
static void test_full_disk(void **state)
{
    struct fixture *f = *state;
    struct tensor_list old = values_state(&f->arena);
    struct err err = {0};
    struct stat st;

    assert_int_equal(save_tensors(f->path, &f->value, &err), 0);
    assert_int_equal(stat(f->path, &st), 0);
    rlim_t whole = (rlim_t)st.st_size;
    assert_int_equal(save_tensors(f->path, &old, &err), 0);
    for (rlim_t room = 0; room < whole; room += 97) {
        limit_files(room);
        int rc = save_tensors(f->path, &f->value, &err);
        limit_files(RLIM_INFINITY);
        assert_int_equal(rc, -1);
        assert_int_equal(err.kind, ERR_FATAL);
        assert_int_equal(err.code, EFBIG);
        assert_non_null(strstr(err.msg, f->path));
        assert_file(f->path, &old, "model");
        assert_int_equal(files_in(f->folder), 1);
    }
    limit_files(whole);
    int rc = save_tensors(f->path, &f->value, &err);
    limit_files(RLIM_INFINITY);
    assert_int_equal(rc, 0);
    assert_file(f->path, &f->value, "model");
}

static void test_refused(void **state)
{
    struct fixture *f = *state;
    const struct tensor_row impossible = {.name = "w", .tensor = {.dims = -1}};
    const struct tensor_list bad = {&impossible, 1};
    struct err err = {0};
    char path[4096];

    assert_int_equal(save_tensors(f->path, &bad, &err), -1);
    assert_int_equal(err.kind, ERR_INVALID);
    assert_int_equal(files_in(f->folder), 0);
    snprintf(path, sizeof(path), "%s/none/model.pt", f->folder);
    assert_int_equal(save_tensors(path, &f->value, &err), -1);
    assert_int_equal(err.code, ENOENT);
    assert_non_null(strstr(err.msg, path));
    /* A folder of that name is not replaced. */
    assert_int_equal(mkdir(f->path, 0777), 0);
    assert_int_equal(save_tensors(f->path, &f->value, &err), -1);
    assert_int_equal(err.code, EISDIR);
    assert_int_equal(files_in(f->folder), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_whole, setup, teardown),
        cmocka_unit_test_setup_teardown(test_full_disk, setup, teardown),
        cmocka_unit_test_setup_teardown(test_refused, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
