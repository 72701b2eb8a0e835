/* test_events.c - the file: its name, what a fresh start removes and when it is flushed. */
#include "folder.h"
#include "trainer/events/event_encode.h"

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

    struct events *e = events_open(&f->options, &err);
    assert_non_null(e);
    in_folder(f, "events.out.tfevents.1700000000.node-0.7.0.trainer", want);
    assert_scalars(f, want, 0); /* on disk before anything else */
    struct events *second = events_open(&f->options, &err);
    assert_non_null(second);
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
    struct events *e = events_open(&f->options, &err);
    assert_non_null(e);
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
    struct events *e = events_open(&f->options, &err);
    assert_non_null(e);
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
    struct events *first = events_open(&f->options, &err);
    assert_non_null(first);
    f->wall_ms += 1000;
    struct events *second = events_open(&f->options, &err);
    assert_non_null(second);
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

static void test_no_wait(void **state)
{
    struct fixture *f = *state;
    struct err err = {0};
    char path[PATH_MAX];

    f->options.flush_ms = 0;
    struct events *e = events_open(&f->options, &err);
    assert_non_null(e);
    assert_int_equal(events_scalar(e, "a", 1, 1, &err), 0);
    file_of(f, 0, path);
    assert_scalars(f, path, 1);
    assert_int_equal(events_close(e, &err), 0);
}

static void test_refused(void **state)
{
    struct fixture *f = *state;
    struct err err = {0};
    char tag[EVENTS_TAG_BYTES + 2];
    struct events *e = events_open(&f->options, &err);

    assert_non_null(e);
    memset(tag, 'x', sizeof(tag));
    tag[EVENTS_TAG_BYTES + 1] = '\0';
    assert_int_equal(events_scalar(e, tag, 1, 1, &err), -1);
    assert_non_null(strstr(err.msg, "257 bytes, expected 1..256"));
    assert_int_equal(events_scalar(e, "", 1, 1, &err), -1);
    tag[EVENTS_TAG_BYTES] = '\0';
    assert_int_equal(events_scalar(e, tag, 1, 1, &err), 0);
    for (int i = 1; i < EVENTS_TAGS_MAX; i++) {
        snprintf(tag, sizeof(tag), "%d", i);
        assert_int_equal(events_scalar(e, tag, 1, 1, &err), 0);
    }
    assert_int_equal(events_scalar(e, "one more", 1, 1, &err), -1);
    assert_non_null(strstr(err.msg, "more than 4096 tags"));
    assert_int_equal(events_scalar(e, "1", 2, 1, &err), 0);
    assert_int_equal(events_close(e, &err), 0);
    f->options.flush_ms = -1;
    assert_null(events_open(&f->options, &err));
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
    struct events *e = events_open(&f->options, &err);
    assert_non_null(e);
    assert_int_equal(event_encode_header(now, &want, &err), 0);
    assert_int_equal(event_encode_restart(now, 9, &want, &err), 0);
    assert_int_equal(event_encode_restart(now, 9, &want, &err), 0);
    assert_int_equal(fs_read(path, &got, &err), 0);
    assert_int_equal(got.len, want.len);
    assert_memory_equal(got.data, want.data, want.len);
    assert_int_equal(events_close(e, &err), 0);
    assert_true(exists(f, "events.out.tfevents.1.old.1.0"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_name_and_header, setup, teardown),
        cmocka_unit_test_setup_teardown(test_odd_host_and_new_folder, setup, teardown),
        cmocka_unit_test_setup_teardown(test_fresh_removes_only_its_own, setup, teardown),
        cmocka_unit_test_setup_teardown(test_fresh_leaves_what_is_being_written, setup, teardown),
        cmocka_unit_test_setup_teardown(test_resumed, setup, teardown),
        cmocka_unit_test_setup_teardown(test_flush_by_time, setup, teardown),
        cmocka_unit_test_setup_teardown(test_no_wait, setup, teardown),
        cmocka_unit_test_setup_teardown(test_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(test_unusable_folder, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
