/* test_attempt_mark.c - two attempts of a job write to one folder: wherever the older one is when the newer begins, no checkpoint
 * of it appears behind the newer one's back. */
#include "common/fsutil.h"
#include "scratch.h"
#include "test.h"
#include "trainer/state/files/ckpt_dir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CALLS_MAX = 100 };

/* Before call `at` (from 0) that opens or changes something, `then` runs once. */
static struct {
    int at;
    void (*then)(void);
} before = {.at = -1};

static void count(void)
{
    if (before.at >= 0 && before.at-- == 0)
        before.then();
}

int renameat(int from_fd, const char *from, int to_fd, const char *to)
{
    count();
    return (int)syscall(SYS_renameat2, from_fd, from, to_fd, to, 0);
}

int mkdirat(int fd, const char *path, mode_t mode)
{
    count();
    return (int)syscall(SYS_mkdirat, fd, path, mode);
}

int unlinkat(int fd, const char *path, int flags)
{
    count();
    return (int)syscall(SYS_unlinkat, fd, path, flags);
}

int fsync(int fd)
{
    (void)fd;
    count();
    return 0;
}

int faccessat(int fd, const char *path, int mode, int flags)
{
    count();
    return (int)syscall(SYS_faccessat2, fd, path, mode, flags);
}

int openat(int fd, const char *path, int flags, ...)
{
    count();
    return (int)syscall(SYS_openat, fd, path, flags, 0666);
}

static char root[64], dir[96];

static int make(void **state)
{
    (void)state;
    snprintf(root, sizeof(root), "%s/attempt_mark_XXXXXX", scratch_home());
    assert_non_null(mkdtemp(root));
    snprintf(dir, sizeof(dir), "%s/run", root);
    before.at = -1;
    return 0;
}

static int clear(void **state)
{
    char command[96];

    (void)state;
    before.at = -1;
    snprintf(command, sizeof(command), "rm -rf %s", root);
    return system(command);
}

static int put(void *ctx, const struct pt_sink *sink, struct err *err)
{
    return sink->write(sink->ctx, ctx, strlen(ctx), err);
}

static int save(struct attempt_mark *mark, int64_t step, struct err *err)
{
    cleanup_ckpt_writer struct ckpt_writer w = {.tmp = ""};
    const struct manifest m = {.step = step, .config = 1, .run_id = "job"};

    return ckpt_begin(&w, dir, &m, mark, err) || ckpt_file(&w, "one", put, (char *)"1", err) ||
                   ckpt_file(&w, "two", put, (char *)"2", err) || ckpt_commit(&w, 3, err)
               ? -1
               : 0;
}

static bool has(const char *name)
{
    char path[192];
    struct stat st;

    snprintf(path, sizeof(path), "%s/%s", dir, name);
    return lstat(path, &st) == 0;
}

/* No temporary folder, except an attempt's empty one. */
static void expect_nothing_left(void)
{
    char command[128];

    snprintf(command, sizeof(command), "test -z \"$(find %s -name '.tmp-*')\"", dir);
    if (system(command) != 0)
        fail_msg("a temporary folder is left in %s", dir);
}

static int64_t newest(void)
{
    cleanup_arena struct arena a = {0};
    struct ckpt_list list;
    struct err err;

    return ckpt_list(dir, &a, &list, &err) || !list.len ? -1 : list.entry[0].step;
}

static void expect_stops(struct attempt_mark *m, int other)
{
    struct err err = {0};
    char want[64];

    assert_int_equal(ckpt_claim(dir, m, &err), -1);
    assert_int_equal(err.kind, ERR_PEER);
    snprintf(want, sizeof(want), "attempt %d of the job writes here", other);
    if (!strstr(err.msg, want) || !strstr(err.msg, dir))
        fail_msg("%s: expected \"%s\"", err.msg, want);
}

static void expect_goes_on(struct attempt_mark *m)
{
    struct err err = {0};

    if (ckpt_claim(dir, m, &err))
        fail_msg("%s", err.msg);
}

/* ---- every moment of a write */

static struct attempt_mark newer;
static int64_t seen; /* the newest step when the newer attempt had begun */

static void newer_begins(void)
{
    struct err err = {0};

    if (ckpt_claim(dir, &newer, &err))
        fail_msg("%s", err.msg);
    seen = newest();
}

static void no_checkpoint_appears_behind_a_newer_attempt(void **state)
{
    int sweeps = 0, late = 0;

    for (bool struck = true; struck && sweeps < CALLS_MAX; sweeps++) {
        struct attempt_mark older = {.known = true, .number = 5};
        struct err err = {0};
        clear(state);
        make(state);
        newer = (struct attempt_mark){.known = true, .number = 6};
        expect_goes_on(&older);
        assert_int_equal(save(&older, 10, &err), 0);
        before.then = newer_begins;
        before.at = sweeps;
        const int rc = save(&older, 20, &err);
        struck = before.at < 0;
        before.at = -1;
        if (!struck)
            break;
        assert_int_equal(newest(), seen);
        assert_int_equal(rc == 0, seen == 20);
        late += rc != 0;
        /* The older one stops, whatever it does next, and the newer one writes undisturbed. */
        expect_stops(&older, 6);
        assert_int_equal(save(&older, 30, &err), -1);
        assert_int_equal(err.kind, ERR_PEER);
        assert_int_equal(save(&newer, 20, &err), 0);
        assert_int_equal(newest(), 20);
        assert_false(has(".attempt-5"));
        assert_false(has(".attempt-gone"));
    }
    print_message("%d moments, %d of them before the rename\n", sweeps, late);
    assert_true(sweeps > 10 && sweeps < CALLS_MAX && late > 5);
}

/* Both begin at once: one of the two stops at least, and never both. */
static void of_two_that_begin_the_newer_goes_on(void **state)
{
    int sweeps = 0;

    for (bool struck = true; struck && sweeps < CALLS_MAX; sweeps++) {
        struct attempt_mark older = {.known = true, .number = 5};
        struct err err = {0};
        clear(state);
        make(state);
        assert_int_equal(mkdir(dir, 0777), 0);
        newer = (struct attempt_mark){.known = true, .number = 6};
        before.then = newer_begins;
        before.at = sweeps;
        const int rc = ckpt_claim(dir, &older, &err);
        struck = before.at < 0;
        before.at = -1;
        if (!struck)
            break;
        assert_true(rc == 0 || err.kind == ERR_PEER);
        expect_stops(&older, 6);
        assert_int_equal(save(&older, 10, &err), -1);
        assert_int_equal(save(&newer, 10, &err), 0);
    }
    assert_true(sweeps > 3 && sweeps < CALLS_MAX);
}

static void of_two_old_attempts_both_stop(void **state)
{
    struct attempt_mark m[3] = {{true, 3, 1, false}, {true, 4, 2, false}, {true, 6, 3, false}};
    struct err err = {0};

    (void)state;
    for (int i = 0; i < 3; i++)
        expect_goes_on(&m[i]);
    expect_stops(&m[0], 6);
    expect_stops(&m[1], 6);
    assert_int_equal(save(&m[0], 1, &err), -1);
    assert_int_equal(save(&m[2], 1, &err), 0);
}

/* ---- restarts */

static void a_restart_in_an_attempt_goes_on(void **state)
{
    struct attempt_mark first = {.known = true, .number = 0}, again = first;
    struct err err = {0};

    (void)state;
    expect_goes_on(&first);
    assert_int_equal(save(&first, 1, &err), 0);
    expect_goes_on(&again);
    assert_int_equal(save(&again, 2, &err), 0);
    expect_goes_on(&first);
}

/* Attempt 0 begins again after attempt 5: the job's status was cleared. */
static void a_second_lower_attempt_goes_on(void **state)
{
    struct attempt_mark dead = {true, 5, 50, false};
    struct attempt_mark zero = {true, 0, 1, false}, zero_again = zero, one = {true, 1, 2, false};
    struct err err = {0};

    (void)state;
    expect_goes_on(&dead);
    assert_int_equal(save(&dead, 1, &err), 0);
    expect_stops(&zero, 5);
    expect_stops(&zero_again, 5); /* a restart by the same launcher */
    expect_goes_on(&one);
    assert_int_equal(save(&one, 2, &err), 0);
    expect_stops(&dead, 1);
}

/* The owner of the newer mark lives: it writes between the starts of two lower attempts. */
static void lower_attempts_stop_as_long_as_the_newer_one_writes(void **state)
{
    struct attempt_mark live = {true, 6, 60, false};
    struct err err = {0};

    (void)state;
    expect_goes_on(&live);
    for (uint32_t i = 0; i < 4; i++) {
        struct attempt_mark late = {true, (int)i, i, false};
        expect_stops(&late, 6);
        assert_int_equal(save(&live, i, &err), 0);
    }
}

static void die(void)
{
    _exit(7);
}

/* Killed at any call of a write that also removes an old checkpoint: the next writes leave nothing of it. */
static void a_kill_leaves_nothing(void **state)
{
    int sweeps = 0;

    for (int known = 0; known < 2; known++) {
        for (int status = 7 << 8; status == 7 << 8 && sweeps < 2 * CALLS_MAX; sweeps++) {
            struct attempt_mark m = {.known = known, .number = 1}, again = m;
            struct err err = {0};
            clear(state);
            make(state);
            for (int step = 1; step <= 3; step++)
                assert_int_equal(save(&m, step, &err), 0);
            const pid_t child = fork();
            assert_true(child >= 0);
            if (child == 0) {
                before.then = die;
                before.at = sweeps % CALLS_MAX;
                _exit(save(&m, 4, &err) != 0);
            }
            assert_int_equal(waitpid(child, &status, 0), child);
            for (int step = 5; step <= 7; step++)
                assert_int_equal(save(&again, step, &err), 0);
            expect_nothing_left();
        }
        assert_true(sweeps % CALLS_MAX > 10);
        sweeps = CALLS_MAX;
    }
}

/* ---- what others do to the folder */

static void a_removed_folder_is_made_again(void **state)
{
    struct attempt_mark m = {.known = true, .number = 2};
    struct err err = {0};

    (void)state;
    expect_goes_on(&m);
    assert_int_equal(save(&m, 1, &err), 0);
    char command[128];
    snprintf(command, sizeof(command), "rm -rf %s", dir);
    assert_int_equal(system(command), 0);
    assert_int_equal(save(&m, 2, &err), 0);
    assert_int_equal(newest(), 2);
}

static void names_that_are_no_marks_stay(void **state)
{
    static const char *const names[] = {".attempt-",   ".attempt-x",           ".attempt-7x",
                                        ".attempt--1", ".attempt-99999999999", "attempt-9"};
    struct attempt_mark m = {.known = true, .number = 1};
    char path[192];

    (void)state;
    assert_int_equal(mkdir(dir, 0777), 0);
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        snprintf(path, sizeof(path), "%s/%s", dir, names[i]);
        assert_int_equal(mkdir(path, 0777), 0);
    }
    expect_goes_on(&m);
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        assert_true(has(names[i]));
}

/* A mark that is a link to somebody else's folder: nothing is written or removed behind it. */
static void a_link_is_not_followed(void **state)
{
    struct attempt_mark m = {.known = true, .number = 1};
    char path[192], file[192];
    struct err err = {0};

    (void)state;
    snprintf(path, sizeof(path), "%s/other", root);
    snprintf(file, sizeof(file), "%s/other/kept", root);
    assert_int_equal(mkdir(dir, 0777), 0);
    assert_int_equal(mkdir(path, 0777), 0);
    assert_int_equal(fs_write_atomic(file, "x", 1, &err), 0);
    for (int i = 0; i < 2; i++) {
        char link[192];
        snprintf(link, sizeof(link), "%s/.attempt-%d", dir, i);
        assert_int_equal(symlink(path, link), 0);
    }
    expect_goes_on(&m);
    assert_int_equal(save(&m, 1, &err), -1);
    assert_int_equal(access(file, F_OK), 0);
}

static void without_an_attempt_there_is_no_mark(void **state)
{
    struct attempt_mark none = {0};
    struct err err = {0};

    (void)state;
    expect_goes_on(&none);
    assert_int_equal(access(dir, F_OK), -1);
    assert_int_equal(save(&none, 1, &err), 0);
    assert_false(has(".attempt-0"));
}

/* readdir fails, as over a file server that does not answer. */
static bool list_fails;

struct dirent *__wrap_readdir(DIR *names);
struct dirent *__real_readdir(DIR *names);

struct dirent *__wrap_readdir(DIR *names)
{
    errno = list_fails ? ESTALE : errno;
    return list_fails ? NULL : __real_readdir(names);
}

/* An attempt that cannot see the others' marks writes nothing. */
static void marks_that_cannot_be_listed_stop_it(void **state)
{
    struct attempt_mark second = {.known = true, .number = 2}, first = {.known = true, .number = 1};
    struct err err = {0};

    (void)state;
    assert_int_equal(save(&second, 5, &err), 0);
    list_fails = true;
    const int rc = save(&first, 6, &err);
    list_fails = false;
    assert_int_equal(rc, -1);
    assert_int_equal(err.code, ESTALE);
    assert_false(has("step-0000000006"));
    assert_int_equal(save(&first, 6, &err), -1);
    assert_int_equal(err.kind, ERR_PEER);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, make, clear)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(no_checkpoint_appears_behind_a_newer_attempt),
        TEST(of_two_that_begin_the_newer_goes_on),
        TEST(of_two_old_attempts_both_stop),
        TEST(a_kill_leaves_nothing),
        TEST(a_restart_in_an_attempt_goes_on),
        TEST(a_second_lower_attempt_goes_on),
        TEST(lower_attempts_stop_as_long_as_the_newer_one_writes),
        TEST(a_removed_folder_is_made_again),
        TEST(names_that_are_no_marks_stay),
        TEST(a_link_is_not_followed),
        TEST(marks_that_cannot_be_listed_stop_it),
        TEST(without_an_attempt_there_is_no_mark),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
