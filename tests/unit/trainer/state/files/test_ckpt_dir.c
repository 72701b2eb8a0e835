/* test_ckpt_dir.c - a checkpoint is whole or not there, wherever its writer dies; manifests that lie are refused. */
#include "common/fsutil.h"
#include "scratch.h"
#include "test.h"
#include "trainer/state/files/ckpt_dir.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* renameat(2), and the process's end before or behind one of its calls. */
static int renames_left = -1;
static bool dies_behind;

int renameat(int from_fd, const char *from, int to_fd, const char *to)
{
    const bool last = renames_left >= 0 && renames_left-- == 0;

    if (last && !dies_behind)
        raise(SIGKILL);
    int rc = (int)syscall(SYS_renameat2, from_fd, from, to_fd, to, 0);
    if (last)
        raise(SIGKILL);
    return rc;
}

/* mkdir(2): before the temporary folder is made, somebody moves the run's and puts a link to `away` in its place. */
static struct {
    const char *folder, *moved, *away; /* folder NULL: nobody does */
} swapped;

static void swap(const char *path)
{
    if (!swapped.folder || !strstr(path, ".tmp-step-"))
        return;
    assert_int_equal(syscall(SYS_renameat2, AT_FDCWD, swapped.folder, AT_FDCWD, swapped.moved, 0), 0);
    assert_int_equal(symlink(swapped.away, swapped.folder), 0);
    swapped.folder = NULL;
}

int mkdir(const char *path, mode_t mode)
{
    swap(path);
    return (int)syscall(SYS_mkdirat, AT_FDCWD, path, mode);
}

int mkdirat(int fd, const char *path, mode_t mode)
{
    swap(path);
    return (int)syscall(SYS_mkdirat, fd, path, mode);
}

struct fixture {
    char dir[64];
    char ckpt[96];
};

/* fsync(2), and the folders and files that it was called for, each behind a line's end. */
static char synced[16384];
static int folder_code; /* errno of fsync for folders; 0: none */

int fsync(int fd)
{
    struct stat st;
    char link[64], path[PATH_MAX];
    const size_t len = strlen(synced);

    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    const ssize_t n = readlink(link, path, sizeof(path) - 1);
    if (n > 0)
        snprintf(synced + len, sizeof(synced) - len, "%.*s\n", (int)n, path);
    if (folder_code && fstat(fd, &st) == 0 && S_ISDIR(st.st_mode)) {
        errno = folder_code;
        return -1;
    }
    return (int)syscall(SYS_fsync, fd);
}

static int make(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));

    snprintf(f->dir, sizeof(f->dir), "%s/ckpt_dir_XXXXXX", scratch_home());
    assert_non_null(mkdtemp(f->dir));
    snprintf(f->ckpt, sizeof(f->ckpt), "%s/a/b", f->dir);
    *state = f;
    return 0;
}

static int unmake(void **state)
{
    struct fixture *f = *state;
    char command[128];

    snprintf(command, sizeof(command), "rm -rf %s", f->dir);
    assert_int_equal(system(command), 0);
    free(f);
    return 0;
}

struct payload {
    int chunks;
    int die_after; /* chunks; -1: never */
    int fail_after;
};

static int put(void *ctx, const struct pt_sink *sink, struct err *err)
{
    const struct payload *p = ctx;
    char chunk[100000];

    for (int i = 0; i < p->chunks; i++) {
        if (i == p->die_after)
            raise(SIGKILL);
        if (i == p->fail_after)
            return err_set(err, ERR_FATAL, "injected");
        memset(chunk, 'a' + i, sizeof(chunk));
        if (sink->write(sink->ctx, chunk, sizeof(chunk), err))
            return -1;
    }
    return 0;
}

static int write_one(const char *dir, int64_t step, const char *run, int64_t keep, struct payload p,
                     struct err *err)
{
    cleanup_ckpt_writer struct ckpt_writer w = {.tmp = ""};
    struct manifest m = {.step = step, .config = 7, .saved_ms = 1700000000123 + step};
    struct payload small = {.chunks = 1, .die_after = -1, .fail_after = -1};

    snprintf(m.run_id, sizeof(m.run_id), "%s", run);
    return ckpt_begin(&w, dir, &m, NULL, err) || ckpt_file(&w, "one", put, &small, err) ||
                   ckpt_file(&w, "two", put, &p, err) || ckpt_commit(&w, keep, err)
               ? -1
               : 0;
}

static const struct payload GOOD = {.chunks = 3, .die_after = -1, .fail_after = -1};

static void expect_steps(const char *dir, const int64_t *steps, size_t n)
{
    cleanup_arena struct arena a = {0};
    struct ckpt_list list;
    struct err err;

    assert_int_equal(ckpt_list(dir, &a, &list, &err), 0);
    assert_int_equal(list.len, n);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(list.entry[i].step, steps[i]);
}
#define STEPS(...) (int64_t[]){__VA_ARGS__}, ARRAY_LEN(((int64_t[]){__VA_ARGS__}))

static int entries(const char *path)
{
    cleanup_closedir DIR *dir = opendir(path);
    int n = 0;

    assert_non_null(dir);
    for (struct dirent *e; (e = readdir(dir));)
        n += strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
    return n;
}

static void written_and_read_back(void **state)
{
    const struct fixture *f = *state;
    cleanup_buf struct buf out = BUF_INIT(1 << 20);
    char path[160];
    struct manifest m;
    struct err err = {0};

    assert_int_equal(write_one(f->ckpt, 42, "run \"x\"", 3, GOOD, &err), 0);
    snprintf(path, sizeof(path), "%s/step-0000000042", f->ckpt);
    assert_int_equal(entries(path), 3);
    assert_int_equal(entries(f->ckpt), 1);
    assert_int_equal(ckpt_manifest(path, &m, &err), 0);
    assert_int_equal(m.step, 42);
    assert_int_equal(m.config, 7);
    assert_true(m.saved_ms == 1700000000165);
    assert_string_equal(m.run_id, "run \"x\"");
    assert_int_equal(ckpt_read(path, &m, "two", &out, &err), 0);
    assert_int_equal(out.len, 300000);
    assert_int_equal(out.data[299999], 'c');
    buf_clear(&out);
    assert_int_equal(ckpt_read(path, &m, "three", &out, &err), -1);
    assert_non_null(strstr(err.msg, "no three"));
    cleanup_buf struct buf small = BUF_INIT(1000);
    assert_int_equal(ckpt_read(path, &m, "two", &small, &err), -1);
    m.file[1].crc++;
    assert_int_equal(ckpt_read(path, &m, "two", &out, &err), -1);
    assert_non_null(strstr(err.msg, "checksum"));
}

static void the_newest_stay(void **state)
{
    const struct fixture *f = *state;
    struct err err = {0};

    for (int64_t step = 1; step <= 5; step++)
        assert_int_equal(write_one(f->ckpt, 10 * step, "a", 2, GOOD, &err), 0);
    expect_steps(f->ckpt, STEPS(50, 40));
    /* Set back to before 40: what is newer is not counted, and one of the same name is replaced. */
    assert_int_equal(write_one(f->ckpt, 40, "a", 1, GOOD, &err), 0);
    expect_steps(f->ckpt, STEPS(50, 40));
    assert_int_equal(entries(f->ckpt), 2);
}

/* A power cut loses none of the folders that were made for the first checkpoint. */
static void each_new_folder_is_synced_in_its_parent(void **state)
{
    const struct fixture *f = *state;
    char above[96];
    struct err err = {0};

    synced[0] = '\0';
    assert_int_equal(write_one(f->ckpt, 1, "a", 3, GOOD, &err), 0);
    snprintf(above, sizeof(above), "\n%s\n%s/a\n", f->dir, f->dir);
    if (strncmp(synced, above + 1, strlen(above + 1)) != 0)
        fail_msg("expected first%ssynced:\n%s", above, synced);
}

/* Whether it fails or is killed behind any chunk, a writer leaves nothing that counts, and what it left goes with the next one. */
static void a_writer_that_did_not_end_leaves_nothing_that_counts(void **state)
{
    const struct fixture *f = *state;
    struct err err = {0};
    int status;

    assert_int_equal(write_one(f->ckpt, 1, "a", 3, GOOD, &err), 0);
    for (int i = 0; i < 3; i++) {
        struct payload p = {.chunks = 3, .die_after = -1, .fail_after = i};
        assert_int_equal(write_one(f->ckpt, 2, "a", 3, p, &err), -1);
        assert_non_null(strstr(err.msg, "two: injected"));
        assert_int_equal(entries(f->ckpt), 1);
    }
    for (int i = 0; i < 3; i++) {
        pid_t pid = fork();
        if (pid == 0) {
            struct payload p = {.chunks = 3, .die_after = i, .fail_after = -1};
            _exit(write_one(f->ckpt, 2, "a", 3, p, &err) ? 1 : 0);
        }
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFSIGNALED(status));
        expect_steps(f->ckpt, STEPS(1));
        assert_int_equal(entries(f->ckpt), 2); /* and what it left */
    }
    assert_int_equal(write_one(f->ckpt, 3, "a", 3, GOOD, &err), 0);
    expect_steps(f->ckpt, STEPS(3, 1));
    assert_int_equal(entries(f->ckpt), 2);
}

/* Whole checkpoints of this step. */
static int whole(const char *dir, int64_t step)
{
    cleanup_arena struct arena a = {0};
    struct ckpt_list list;
    struct err err;
    int n = 0;

    assert_int_equal(ckpt_list(dir, &a, &list, &err), 0);
    for (size_t i = 0; i < list.len; i++) {
        cleanup_buf struct buf out = BUF_INIT(1 << 20);
        const char *path = arena_printf(&a, "%s/%s", dir, list.entry[i].name);
        struct manifest m;
        n += list.entry[i].step == step && !ckpt_manifest(path, &m, &err) &&
             !ckpt_read(path, &m, "two", &out, &err);
    }
    return n;
}

/* A step that is written again, by a writer that is killed at each of its renames: one of the two is always there, and the next
 * writer leaves one. */
static void a_step_that_is_written_again_is_never_missing(void **state)
{
    const struct fixture *f = *state;
    struct err err = {0};
    int killed = 0;

    assert_int_equal(write_one(f->ckpt, 7, "a", 3, GOOD, &err), 0);
    for (int at = 0, ended = 0; !ended; at++) {
        int status;
        pid_t pid = fork();
        if (pid == 0) {
            renames_left = at / 2;
            dies_behind = at % 2;
            _exit(write_one(f->ckpt, 7, "a", 3, GOOD, &err) ? 1 : 0);
        }
        assert_int_equal(waitpid(pid, &status, 0), pid);
        ended = WIFEXITED(status) && WEXITSTATUS(status) == 0;
        assert_true(ended || (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL));
        assert_true(whole(f->ckpt, 7) >= 1);
        killed += !ended;
        assert_int_equal(write_one(f->ckpt, 7, "a", 3, GOOD, &err), 0);
        assert_int_equal(whole(f->ckpt, 7), 1);
        assert_int_equal(entries(f->ckpt), 1);
    }
    assert_int_equal(killed,
                     8); /* what an earlier writer left, old one aside, new one in place, old one hidden */
}

static void a_fifo_is_no_manifest(void **state)
{
    const struct fixture *f = *state;
    struct manifest m;
    char path[160], manifest[192];
    struct err err = {0};

    assert_int_equal(write_one(f->ckpt, 10, "b", 2, GOOD, &err), 0);
    snprintf(path, sizeof(path), "%s/step-0000000010", f->ckpt);
    snprintf(manifest, sizeof(manifest), "%s/manifest.json", path);
    assert_true(unlink(manifest) == 0 && mkfifo(manifest, 0600) == 0);
    assert_int_equal(ckpt_manifest(path, &m, &err), -1);
    assert_int_equal(err.kind, ERR_INVALID);
    assert_int_equal(write_one(f->ckpt, 10, "a", 2, GOOD, &err), 0); /* in its place: it is damaged */
    assert_int_equal(ckpt_manifest(path, &m, &err), 0);
}

/* Checkpoints, also those of versions that kept several runs in one folder, by their steps; and folders that may be runs'. */
static void what_is_listed(void **state)
{
    const struct fixture *f = *state;
    static const char *const checkpoints[] = {"step-1234567890123456-ffffffff", "step-0000000007-old",
                                              "step-0000000005-0a1b2c3d", "step-0000000003"};
    static const char *const others[] = {
        "step-1",
        "step-00000000012345678901",
        "step-000000001x",
        "steps-0000000001",
        "step-0000000001-",
        "step-0000000001-0123456",
        "step-0000000001-012345678",
        "step-0000000001-0123456g",
        "step-0000000001-0123456F",
        "step-0000000001_01234567",
        "step-0000000001-01234567-old",
        "step-0000000001-old-old",
        "step-0000000001.old",
        "notes",
        "job-1",
    };
    cleanup_arena struct arena a = {0};
    struct ckpt_list list;
    struct err err = {0};

    for (size_t i = 0; i < ARRAY_LEN(checkpoints); i++)
        assert_int_equal(fs_mkdirs(arena_printf(&a, "%s/%s", f->ckpt, checkpoints[i]), &err), 0);
    for (size_t i = 0; i < ARRAY_LEN(others); i++)
        assert_int_equal(mkdir(arena_printf(&a, "%s/%s", f->ckpt, others[i]), 0777), 0);
    assert_int_equal(mkdir(arena_printf(&a, "%s/.hidden", f->ckpt), 0777), 0);
    assert_int_equal(fs_write_atomic(arena_printf(&a, "%s/file", f->ckpt), "x", 1, &err), 0);
    expect_steps(f->ckpt, STEPS(1234567890123456, 7, 5, 3));
    assert_int_equal(ckpt_list(f->ckpt, &a, &list, &err), 0);
    for (size_t i = 0; i < list.len; i++)
        assert_string_equal(list.entry[i].name, checkpoints[i]);
    assert_int_equal(list.runs, ARRAY_LEN(others));
    for (size_t i = 0; i < ARRAY_LEN(others); i++) {
        bool found = false;
        for (size_t k = list.len; k < list.len + list.runs; k++)
            found = found || strcmp(list.entry[k].name, others[i]) == 0;
        assert_true(found);
    }
    assert_int_equal(ckpt_list("/nowhere/at/all", &a, &list, &err), -1);
    assert_int_equal(err.kind, ERR_NOT_FOUND);
}

#define FILE_ "{\"name\": \"a\", \"bytes\": 1, \"crc32\": 2}"
#define HEAD_ "\"format\": 2, \"step\": 3, \"config\": 4, \"run_id\": \"r\", "

static void manifests_that_lie_are_refused(void **state)
{
    static const struct {
        const char *text, *says;
    } cases[] = {
        {"", "not JSON"},
        {"[]", "manifest: expected an object"},
        {"{}", "expected format, step"},
        {"{" HEAD_ "\"files\": []}", "expected format, step, config, run_id and files"},
        {"{" HEAD_ "\"files\": [" FILE_ "]} x", "text after the JSON"},
        {"{" HEAD_ "\"files\": [" FILE_ "," FILE_ "]}", "files[1]: a: too many, or twice"},
        {"{\"format\": 1, \"step\": 3, \"files\": [" FILE_ "]}",
         "format 1, which this version does not read (2)"},
        {"{\"format\": 3, \"run_id\": 5}", "run_id: expected a string"},
        {"{\"format\": 2, \"files\": [" FILE_ "]}", "expected format, step"},
        {"{\"format\": 2, \"step\": -1}", "step: expected an integer 0.."},
        {"{\"format\": 2, \"step\": 1.5}", "step: expected an integer 0.."},
        {"{\"format\": 2, \"step\": 99999999999999999999}", "step: expected an integer 0.."},
        {"{\"format\": 2, \"config\": 4294967296}", "config: expected an integer 0..4294967295"},
        {"{\"format\": 2, \"saved_ms\": -1}", "saved_ms: expected an integer 0.."},
        {"{\"format\": 2, \"run_id\": 5}", "run_id: expected a string"},
        {"{\"format\": 2, \"files\": [{\"name\": \"../a\", \"bytes\": 1, \"crc32\": 2}]}",
         "files[0]: expected name (of a file)"},
        {"{\"format\": 2, \"files\": [{\"name\": \".a\", \"bytes\": 1, \"crc32\": 2}]}",
         "files[0]: expected name (of a file)"},
        {"{\"format\": 2, \"files\": [{\"name\": \"a\", \"crc32\": 2}]}",
         "files[0]: expected name (of a file), bytes and crc32"},
        {"{\"format\": 2, \"files\": [{\"size\": 2}]}", "files[0]: size: unknown field"},
        {"{\"other\": 2}", "other: unknown field"},
    };
    struct manifest m;
    struct err err = {0};

    (void)state;
    static const char good[] = "{" HEAD_ "\"files\": [" FILE_ "]}";
    assert_int_equal(manifest_decode(good, strlen(good), &m, &err), 0);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        assert_int_equal(manifest_decode(cases[i].text, strlen(cases[i].text), &m, &err), -1);
        if (!strstr(err.msg, cases[i].says))
            fail_msg("%s: \"%s\", expected \"%s\"", cases[i].text, err.msg, cases[i].says);
    }
    /* Of another format: whatever else it contains, its run id can be read. */
    static const char older[] = "{\"format\": 1, \"more\": {}, \"run_id\": \"theirs\"}";
    assert_int_equal(manifest_decode(older, strlen(older), &m, &err), -1);
    assert_int_equal(err.kind, ERR_CONFLICT);
    assert_string_equal(m.run_id, "theirs");
    for (size_t len = 0; len < sizeof(good) - 1; len++) {
        cleanup_free char *cut = malloc(len + 1);
        memcpy(cut, good, len);
        assert_int_equal(manifest_decode(cut, len, &m, &err), -1);
    }
}

/* Who may write in the folder may not lead us out of it: a link goes, and what it leads to stays. */
static void links_are_not_followed(void **state)
{
    const struct timespec long_ago[2] = {{.tv_sec = 1}, {.tv_sec = 1}};
    const struct manifest m = {.step = 10, .config = 7, .run_id = "a"};
    const struct fixture *f = *state;
    struct ckpt_writer w;
    char away[96], kept[128], step[160], leftover[160], own[160];
    struct err err = {0};
    struct stat st;

    snprintf(away, sizeof(away), "%s/away", f->dir);
    snprintf(kept, sizeof(kept), "%s/kept", away);
    snprintf(step, sizeof(step), "%s/step-0000000010", f->ckpt);
    snprintf(leftover, sizeof(leftover), "%s/.tmp-step-0000000003", f->ckpt);
    assert_int_equal(ckpt_begin(&w, f->ckpt, &m, NULL, &err), 0);
    snprintf(own, sizeof(own), "%s/%s", f->ckpt, w.tmp);
    ckpt_abort(&w);
    assert_int_equal(fs_mkdirs(away, &err), 0);
    assert_int_equal(fs_write_atomic(kept, "x", 1, &err), 0);
    assert_int_equal(utimensat(AT_FDCWD, away, long_ago, 0), 0);
    assert_true(symlink(away, step) == 0 && symlink(away, leftover) == 0 && symlink(away, own) == 0);
    assert_int_equal(utimensat(AT_FDCWD, leftover, long_ago, AT_SYMLINK_NOFOLLOW), 0);

    assert_int_equal(write_one(f->ckpt, 10, "a", 2, GOOD, &err), 0);
    assert_int_equal(access(kept, F_OK), 0);
    assert_true(lstat(step, &st) == 0 && S_ISDIR(st.st_mode));
    assert_int_equal(entries(step), 3);
    assert_int_equal(entries(f->ckpt), 1);
}

/* Nor a link instead of the run's own folder: nothing is written or removed behind it. */
static void a_link_in_the_runs_place_is_refused(void **state)
{
    const struct fixture *f = *state;
    cleanup_arena struct arena a = {0};
    const char *away = arena_printf(&a, "%s/away", f->dir);
    struct err err = {0};

    assert_int_equal(write_one(away, 3, "b", 3, GOOD, &err), 0);
    assert_int_equal(mkdir(arena_printf(&a, "%s/.tmp-step-0000000004", away), 0777), 0);
    assert_int_equal(mkdir(arena_printf(&a, "%s/a", f->dir), 0777), 0);
    for (int dangling = 0; dangling < 2; dangling++) {
        assert_int_equal(symlink(dangling ? "nowhere" : away, f->ckpt), 0);
        assert_int_equal(write_one(f->ckpt, 10, "a", 1, GOOD, &err), -1);
        if (!strstr(err.msg, arena_printf(&a, "%s: a link", f->ckpt)))
            fail_msg("%s", err.msg);
        assert_int_equal(unlink(f->ckpt), 0);
    }
    assert_int_equal(entries(away), 2);
    /* What stands above it may be a link: that is the user's. */
    assert_int_equal(symlink(away, f->ckpt), 0);
    assert_int_equal(write_one(arena_printf(&a, "%s/run", f->ckpt), 10, "a", 1, GOOD, &err), 0);
    assert_int_equal(entries(away), 3);
}

/* Nor one that comes later, behind the look at the folder. */
static void a_link_that_comes_later_leads_nowhere(void **state)
{
    const struct fixture *f = *state;
    cleanup_arena struct arena a = {0};
    struct err err = {0};

    swapped.folder = f->ckpt;
    swapped.moved = arena_printf(&a, "%s/moved", f->dir);
    swapped.away = arena_printf(&a, "%s/away", f->dir);
    assert_true(fs_mkdirs(f->ckpt, &err) == 0 && mkdir(swapped.away, 0777) == 0);
    assert_int_equal(write_one(f->ckpt, 10, "a", 1, GOOD, &err), 0);
    assert_null(swapped.folder);
    assert_int_equal(entries(swapped.away), 0);
    expect_steps(swapped.moved, STEPS(10));
}

/* SMB before Linux 5.8 and VirtualBox's shared folders have no fsync of folders: that is no reason to have no checkpoints. */
static void folders_that_cannot_be_synced_have_checkpoints(void **state)
{
    const struct fixture *f = *state;
    const struct {
        int code, rc;
    } cases[] = {{EINVAL, 0}, {EOPNOTSUPP, 0}, {ENOSYS, 0}, {EIO, -1}};
    char dir[160];
    struct err err = {0};

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        snprintf(dir, sizeof(dir), "%s/%zu/c", f->dir, i);
        folder_code = cases[i].code;
        const int rc = write_one(dir, 42, "a", 3, GOOD, &err);
        folder_code = 0;
        assert_int_equal(rc, cases[i].rc);
        if (!rc)
            expect_steps(dir, STEPS(42));
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make, unmake)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(written_and_read_back),
        TEST(the_newest_stay),
        TEST(each_new_folder_is_synced_in_its_parent),
        TEST(a_writer_that_did_not_end_leaves_nothing_that_counts),
        TEST(folders_that_cannot_be_synced_have_checkpoints),
        TEST(links_are_not_followed),
        TEST(a_link_in_the_runs_place_is_refused),
        TEST(a_link_that_comes_later_leads_nowhere),
        TEST(a_step_that_is_written_again_is_never_missing),
        TEST(a_fifo_is_no_manifest),
        TEST(what_is_listed),
        TEST(manifests_that_lie_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
