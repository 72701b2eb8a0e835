/* folder.h - a log folder and clocks of the test's own, and what a file of scalars must hold. */
#ifndef TK_TESTS_TRAINER_EVENTS_FOLDER_H
#define TK_TESTS_TRAINER_EVENTS_FOLDER_H

#include "common/fsutil.h"
#include "test.h"
#include "trainer/events/event_encode.h"
#include "trainer/events/events.h"

#include <string.h>
#include <sys/stat.h>

struct fixture {
    char folder[PATH_MAX];
    int64_t wall_ms;
    int64_t mono_ms;
    struct events_options options;
};

static inline int64_t fake_wall(void *ctx)
{
    return ((struct fixture *)ctx)->wall_ms;
}

static inline int64_t fake_mono(void *ctx)
{
    return ((struct fixture *)ctx)->mono_ms;
}

static inline int setup(void **state)
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
                                         .clock = {fake_wall, fake_mono, fake_mono, f}};
    *state = f;
    return 0;
}

static inline int teardown(void **state)
{
    struct fixture *f = *state;
    char command[PATH_MAX + 16];

    snprintf(command, sizeof(command), "rm -rf '%s'", f->folder);
    int rc = system(command);
    free(f);
    return rc;
}

static inline void in_folder(const struct fixture *f, const char *name, char out[static PATH_MAX])
{
    assert_in_range(snprintf(out, PATH_MAX, "%s/%s", f->folder, name), 1, PATH_MAX - 1);
}

static inline bool exists(const struct fixture *f, const char *name)
{
    char path[PATH_MAX];
    struct stat st;

    in_folder(f, name, path);
    return lstat(path, &st) == 0;
}

/* The n-th file (from 0) that events_open makes with these options. */
static inline void file_of(const struct fixture *f, int n, char out[static PATH_MAX])
{
    char name[80];

    snprintf(name, sizeof(name), "events.out.tfevents.%010lld.node-0.7.%d.trainer",
             (long long)(f->wall_ms / 1000), n);
    in_folder(f, name, out);
}

static inline off_t size_of(const char *path)
{
    struct stat st;

    assert_int_equal(stat(path, &st), 0);
    return st.st_size;
}

/* The whole file equals these scalars "a" = 1, 2, ... at step 1, 2, ... after the header. */
static inline void assert_scalars(const struct fixture *f, const char *path, int n)
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

#endif
