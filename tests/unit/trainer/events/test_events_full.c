/* test_events_full.c - a disk that fills up: whole records stay, the rest waits within its bound. */
#include "folder.h"

#include <errno.h>
#include <signal.h>
#include <sys/resource.h>

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
        struct events *e = events_open(&f->options, &err);
        assert_non_null(e);
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
    struct events *e = events_open(&f->options, &err);
    assert_non_null(e);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_full_disk, setup, teardown),
        cmocka_unit_test_setup_teardown(test_full_disk_at_start_and_end, setup, teardown),
        cmocka_unit_test_setup_teardown(test_full_disk_for_long, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
