/* test_events.c - the file: its name, what a fresh start removes, when it is flushed, and a disk that fills up. */
#include "common/fsutil.h"
#include "test.h"
#include "trainer/events/event_encode.h"
#include "trainer/events/events.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

struct fixture {
    char folder[PATH_MAX];
    int64_t wall_ms;
    int64_t mono_ms;
    struct events_options options;
};

static int64_t fake_wall(void *ctx)
{
    return ((struct fixture *)ctx)->wall_ms;
}

static int64_t fake_mono(void *ctx)
{
    return ((struct fixture *)ctx)->mono_ms;
}

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    const char *base = getenv("TMPDIR");

    if (!f)
        return -1;
    snprintf(f->folder, sizeof(f->folder), "%s/test_events.XXXXXX", base ? base : "/tmp");
    if (!mkdtemp(f->folder))
        return -1;
    f->wall_ms = 1700000000250;
    f->mono_ms = 5000;
    f->options = (struct events_options){.log_dir = f->folder,
                                         .host = "node-0",
                                         .pid = 7,
                                         .flush_ms = 2000,
                                         .clock = {fake_wall, fake_mono, fake_mono, NULL, f}};
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    char command[PATH_MAX + 16];

    snprintf(command, sizeof(command), "rm -rf '%s'", f->folder);
    int rc = system(command);
    free(f);
    return rc;
}

static void in_folder(const struct fixture *f, const char *name, char out[static PATH_MAX])
{
    assert_in_range(snprintf(out, PATH_MAX, "%s/%s", f->folder, name), 1, PATH_MAX - 1);
}

static bool exists(const struct fixture *f, const char *name)
{
    char path[PATH_MAX];
    struct stat st;

    in_folder(f, name, path);
    return lstat(path, &st) == 0;
}

/* The n-th file (from 0) that events_open makes with these options. */
static void file_of(const struct fixture *f, int n, char out[static PATH_MAX])
{
    char name[80];

    snprintf(name, sizeof(name), "events.out.tfevents.%010lld.node-0.7.%d.trainer",
             (long long)(f->wall_ms / 1000), n);
    in_folder(f, name, out);
}

static off_t size_of(const char *path)
{
    struct stat st;

    assert_int_equal(stat(path, &st), 0);
    return st.st_size;
}

/* The whole file equals these scalars "a" = 1, 2, ... at step 1, 2, ... after the header. */
static void assert_scalars(const struct fixture *f, const char *path, int n)
{
    cleanup_buf struct buf want = BUF_INIT(1 << 20);
    cleanup_buf struct buf got = BUF_INIT(1 << 20);
    struct err err = {0};
    double now = (double)f->wall_ms / 1000;

    assert_int_equal(event_encode_header(now, &want, &err), 0);
    for (int i = 1; i <= n; i++)
        assert_int_equal(
            event_encode_scalar(&(struct event_value){now, i, "a", i == 1}, (float)i, &want, &err), 0);
    assert_int_equal(fs_read(path, &got, &err), 0);
    assert_int_equal(got.len, want.len);
    assert_memory_equal(got.data, want.data, want.len);
}

static struct events *opened(const struct fixture *f)
{
    struct err err = {0};
    struct events *e = events_open(&f->options, &err);

    if (!e)
        fail_msg("%s", err.msg);
    return e;
}

static void touch(const struct fixture *f, const char *name)
{
    char path[PATH_MAX];
    struct err err = {0};

    in_folder(f, name, path);
    assert_int_equal(fs_write_atomic(path, "x", 1, &err), 0);
}

static void test_name_and_header(void **state)
{
    struct fixture *f = *state;
    struct err err = {0};
    char want[PATH_MAX];

    struct events *e = opened(f);
    in_folder(f, "events.out.tfevents.1700000000.node-0.7.0.trainer", want);
    assert_scalars(f, want, 0); /* on disk before anything else */
    struct events *second = opened(f);
    in_folder(f, "events.out.tfevents.1700000000.node-0.7.1.trainer", want);
    assert_scalars(f, want, 0);
    assert_int_equal(events_close(e, &err), 0);
    assert_int_equal(events_close(second, &err), 0);
    assert_int_equal(events_close(NULL, &err), 0);
}

static void test_odd_host_and_new_folder(void **state)
{
    struct fixture *f = *state;
    struct err err = {0};
    char dir[PATH_MAX];

    in_folder(f, "a/b", dir);
    f->options.log_dir = dir;
    f->options.host = "x/../y z";
    f->wall_ms = 5000;
    struct events *e = opened(f);
    assert_true(exists(f, "a/b/events.out.tfevents.0000000005.x_.._y_z.7.0.trainer"));
    assert_int_equal(events_close(e, &err), 0);
}

/* Another program's curves, and what only bears such a name, stay. */
static void test_fresh_removes_only_its_own(void **state)
{
    static const char *const others[] = {
        "events.out.tfevents.1.old.1.0",          /* SummaryWriter's */
        "events.out.tfevents.1.old.1.0.v2",       /* TensorFlow's */
        "events.out.tfevents.1.old.1.0.trainer2", /* a suffix of the user's */
        "notes.trainer",
        "notes.txt",
        "folder.tfevents.trainer/events.out.tfevents.2.old.1.0.trainer",
        "folder.tfevents.trainer/notes.txt",
    };
    struct fixture *f = *state;
    struct err err = {0};
    char path[PATH_MAX];

    in_folder(f, "folder.tfevents.trainer", path);
    assert_int_equal(mkdir(path, 0777), 0);
    for (size_t i = 0; i < ARRAY_LEN(others); i++)
        touch(f, others[i]);
    in_folder(f, "link.tfevents.trainer", path);
    assert_int_equal(symlink("notes.txt", path), 0);
    in_folder(f, "fifo.tfevents.trainer", path);
    assert_int_equal(mkfifo(path, 0666), 0);
    struct events *ended = events_open(&f->options, &err);
    assert_int_equal(events_close(ended, &err), 0);
    f->options.fresh = true;
    struct events *e = opened(f);
    assert_true(events_removed(e));
    assert_int_equal(events_close(e, &err), 0);
    assert_true(
        exists(f, "events.out.tfevents.1700000000.node-0.7.0.trainer")); /* its number was free again */
    assert_false(exists(f, "events.out.tfevents.1700000000.node-0.7.1.trainer"));
    for (size_t i = 0; i < ARRAY_LEN(others); i++)
        assert_true(exists(f, others[i]));
    assert_true(exists(f, "link.tfevents.trainer"));
    assert_true(exists(f, "fifo.tfevents.trainer"));
}

/* Two runs write into one folder: the one that starts later takes nothing from the other. */
static void test_fresh_leaves_what_is_being_written(void **state)
{
    struct fixture *f = *state;
    struct err err = {0};

    f->options.fresh = true;
    struct events *first = opened(f);
    f->wall_ms += 1000;
    struct events *second = opened(f);
    assert_false(events_removed(second));
    assert_int_equal(events_close(first, &err), 0);
    assert_int_equal(events_close(second, &err), 0);
    assert_true(exists(f, "events.out.tfevents.1700000000.node-0.7.0.trainer"));
    assert_true(exists(f, "events.out.tfevents.1700000001.node-0.7.0.trainer"));
}

static void test_flush_by_time(void **state)
{
    struct fixture *f = *state;
    struct err err = {0};
    struct events *e = events_open(&f->options, &err);
    char path[PATH_MAX];

    assert_non_null(e);
    file_of(f, 0, path);
    f->mono_ms += 100000; /* an old file does not make a new record late */
    assert_int_equal(events_scalar(e, "a", 1, 1, &err), 0);
    f->mono_ms += 1999;
    assert_int_equal(events_scalar(e, "a", 2, 2, &err), 0);
    assert_int_equal(events_tick(e, &err), 0);
    assert_scalars(f, path, 0);
    f->mono_ms += 1;
    assert_int_equal(events_tick(e, &err), 0);
    assert_scalars(f, path, 2);
    assert_int_equal(events_scalar(e, "a", 3, 3, &err), 0);
    assert_scalars(f, path, 2);
    assert_int_equal(events_flush(e, &err), 0);
    assert_scalars(f, path, 3);
    assert_int_equal(events_scalar(e, "a", 4, 4, &err), 0);
    assert_int_equal(events_close(e, &err), 0);
    assert_scalars(f, path, 4);
}

static void test_unusable_folder(void **state)
{
    struct fixture *f = *state;
    struct err err = {0};
    char dir[PATH_MAX];

    touch(f, "file");
    in_folder(f, "file/logs", dir);
    f->options.log_dir = dir;
    assert_null(events_open(&f->options, &err));
    assert_int_equal(err.kind, ERR_FATAL);
    assert_non_null(strstr(err.msg, "file"));
}

/* What a resumed run opens: nothing is removed, and behind the header stands twice what makes readers purge. */
static void test_resumed(void **state)
{
    struct fixture *f = *state;
    cleanup_buf struct buf want = BUF_INIT(1 << 12);
    cleanup_buf struct buf got = BUF_INIT(1 << 12);
    struct err err = {0};
    double now = (double)f->wall_ms / 1000;
    char path[PATH_MAX];

    file_of(f, 0, path);
    touch(f, "events.out.tfevents.1.old.1.0");
    f->options.purge_step = 9;
    struct events *e = opened(f);
    assert_int_equal(event_encode_header(now, &want, &err), 0);
    assert_int_equal(event_encode_restart(now, 9, &want, &err), 0);
    assert_int_equal(event_encode_restart(now, 9, &want, &err), 0);
    assert_int_equal(fs_read(path, &got, &err), 0);
    assert_int_equal(got.len, want.len);
    assert_memory_equal(got.data, want.data, want.len);
    assert_int_equal(events_close(e, &err), 0);
    assert_true(exists(f, "events.out.tfevents.1.old.1.0"));
}

/* Files may grow to `bytes`, as on a disk that fills up: a write is cut short, then fails. */
static void limit_files(rlim_t bytes)
{
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &(struct rlimit){bytes, RLIM_INFINITY}), 0);
}

/* Whatever byte the disk fills at, the file keeps its whole records and what was pending follows later. */
static void test_full_disk(void **state)
{
    struct fixture *f = *state;
    cleanup_buf struct buf record = BUF_INIT(1000);
    struct err err = {0};

    assert_int_equal(
        event_encode_scalar(&(struct event_value){(double)f->wall_ms / 1000, 1, "a", true}, 1, &record, &err),
        0);
    for (rlim_t room = 0; room <= record.len; room++) {
        char path[PATH_MAX];
        struct events *e = opened(f);
        file_of(f, (int)room, path);
        off_t before = size_of(path);
        assert_int_equal(events_scalar(e, "a", 1, 1, &err), 0);
        limit_files((rlim_t)before + room);
        int rc = events_flush(e, &err);
        limit_files(RLIM_INFINITY);
        assert_int_equal(rc, room < record.len ? -1 : 0);
        if (rc < 0) {
            assert_int_equal(err.code, EFBIG);
            assert_non_null(strstr(err.msg, path));
            assert_scalars(f, path, 0);
        }
        assert_int_equal(events_scalar(e, "a", 2, 2, &err), 0);
        assert_int_equal(events_close(e, &err), 0);
        assert_scalars(f, path, 2);
    }
}

static void test_full_disk_at_start_and_end(void **state)
{
    struct fixture *f = *state;
    struct err err = {0};
    char path[PATH_MAX];

    limit_files(3);
    assert_null(events_open(&f->options, &err));
    limit_files(RLIM_INFINITY);
    assert_int_equal(err.code, EFBIG);
    assert_false(exists(f, "events.out.tfevents.1700000000.node-0.7.0.trainer"));
    struct events *e = opened(f);
    file_of(f, 0, path);
    assert_int_equal(events_scalar(e, "a", 1, 1, &err), 0);
    limit_files((rlim_t)size_of(path) + 10);
    int rc = events_close(e, &err);
    limit_files(RLIM_INFINITY);
    assert_int_equal(rc, -1);
    assert_scalars(f, path, 0);
}

/* With a disk full for good, what waits stays within its bound and every further record is refused. */
static void test_full_disk_for_long(void **state)
{
    struct fixture *f = *state;
    struct err err = {0};
    struct events *e = events_open(&f->options, &err);
    char path[PATH_MAX];
    int refused = 0;

    assert_non_null(e);
    file_of(f, 0, path);
    limit_files((rlim_t)size_of(path));
    for (int i = 0; i < 2 * EVENTS_PENDING_BYTES / 50 && refused < 10; i++)
        refused += events_scalar(e, "a", i, 1, &err) < 0;
    int rc = events_flush(e, &err);
    limit_files(RLIM_INFINITY);
    assert_int_equal(refused, 10);
    assert_int_equal(rc, -1);
    assert_int_equal(events_flush(e, &err), 0);
    assert_in_range(size_of(path), EVENTS_PENDING_BYTES - 200, EVENTS_PENDING_BYTES + 200);
    assert_int_equal(events_close(e, &err), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_name_and_header),
        TEST(test_odd_host_and_new_folder),
        TEST(test_fresh_removes_only_its_own),
        TEST(test_fresh_leaves_what_is_being_written),
        TEST(test_resumed),
        TEST(test_flush_by_time),
        TEST(test_unusable_folder),
        TEST(test_full_disk),
        TEST(test_full_disk_at_start_and_end),
        TEST(test_full_disk_for_long),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
