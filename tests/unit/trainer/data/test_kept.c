/* test_kept.c - decoded data over restarts: what is found again, and what never is. */
#include "test.h"

#include "host/memory_file.h"
#include "host/rank_contract.h"
#include "trainer/data/kept.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ITEMS = 100, SIDE = 8, CLASSES = 10 };

static const struct data_layout LAYOUT = {
    .train_items = ITEMS, .test_items = ITEMS, .rows = SIDE, .cols = SIDE, .channels = 1};

struct launcher {
    int fd;
    char where[MEMORY_FILE_BYTES];
};

static int memory(const char *name, int seals)
{
    int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);

    assert_true(fd >= 0);
    assert_int_equal(fcntl(fd, F_ADD_SEALS, seals), 0);
    return fd;
}

static void name_fd(struct launcher *l, int fd)
{
    l->fd = fd;
    snprintf(l->where, sizeof(l->where), "%d/%d", (int)getpid(), fd);
}

static struct launcher launch(void)
{
    struct launcher l;

    l.fd = memory_file_make(CONTRACT_KEPT_DATA_NAME, 0, l.where);
    assert_true(l.fd >= 0);
    return l;
}

static struct buf key_of(const char *text)
{
    struct buf key = BUF_INIT(KEPT_KEY_BYTES);
    struct err err;

    assert_int_equal(buf_puts(&key, text, &err), 0);
    return key;
}

static void fill(const struct dataset *d)
{
    for (int i = 0; i < d->train.items; i++) {
        memset((char *)d->train.x + i * SIDE * SIDE, i, SIDE * SIDE);
        d->train.labels[i] = i % CLASSES;
    }
    for (int i = 0; i < ITEMS; i++)
        d->test.labels[i] = i % CLASSES;
}

/* An attempt that decodes. */
static void keep(const struct launcher *l, const char *text, const struct data_layout *layout)
{
    cleanup_kept struct kept *k = kept_open(l->where);
    cleanup_buf struct buf key = key_of(text);
    struct dataset d;

    assert_non_null(k);
    assert_false(kept_find(k, &key, layout, &d));
    assert_true(kept_make(k, &key, layout, &d));
    fill(&d);
    kept_complete(k, CLASSES);
}

/* Whether a later attempt finds it. */
static bool finds(const struct launcher *l, const char *text, const struct data_layout *layout)
{
    cleanup_kept struct kept *k = kept_open(l->where);
    cleanup_buf struct buf key = key_of(text);
    struct dataset d;

    assert_non_null(k);
    if (!kept_find(k, &key, layout, &d))
        return false;
    assert_int_equal(d.layout.classes, CLASSES);
    for (int i = 0; i < ITEMS; i++) {
        assert_int_equal(((const uint8_t *)d.train.x)[i * SIDE * SIDE + 5], i);
        assert_int_equal(d.test.labels[i], i % CLASSES);
    }
    return true;
}

static void another_key_or_layout_is_not_it(void **state)
{
    (void)state;
    struct launcher l = launch();
    struct data_layout other = LAYOUT;

    other.rows--;
    keep(&l, "file 1", &LAYOUT);
    assert_true(finds(&l, "file 1", &LAYOUT));
    assert_false(finds(&l, "file 2", &LAYOUT));
    assert_false(finds(&l, "file", &LAYOUT));
    assert_false(finds(&l, "file 11", &LAYOUT));
    assert_false(finds(&l, "file 1", &other));
    assert_true(finds(&l, "file 1", &LAYOUT));
    close(l.fd);
}

/* What was kept goes when something else is, even before that is complete; and so does its memory. */
static void new_data_replace_old_ones(void **state)
{
    (void)state;
    struct launcher l = launch();
    struct data_layout large = LAYOUT;
    struct stat before, after;

    large.train_items = 100000;
    keep(&l, "large", &large);
    assert_int_equal(fstat(l.fd, &before), 0);
    keep(&l, "small", &LAYOUT);
    assert_int_equal(fstat(l.fd, &after), 0);
    assert_true(after.st_blocks < before.st_blocks);
    assert_true(finds(&l, "small", &LAYOUT));
    assert_false(finds(&l, "large", &large));
    close(l.fd);
}

/* A rank that is killed while it decodes. */
static void what_was_not_completed_is_not_found(void **state)
{
    (void)state;
    struct launcher l = launch();
    int status;

    keep(&l, "old", &LAYOUT);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        struct buf key = key_of("new");
        struct dataset d;
        struct kept *k = kept_open(l.where);
        if (!k || !kept_make(k, &key, &LAYOUT, &d))
            _exit(1);
        fill(&d);
        raise(SIGKILL);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status));
    assert_false(finds(&l, "old", &LAYOUT));
    keep(&l, "new", &LAYOUT); /* which looks for it first */
    assert_true(finds(&l, "new", &LAYOUT));
    close(l.fd);
}

static void only_one_process_has_it(void **state)
{
    (void)state;
    struct launcher l = launch();
    struct kept *k = kept_open(l.where);

    assert_non_null(k);
    assert_null(kept_open(l.where));
    kept_free(k);
    k = kept_open(l.where);
    assert_non_null(k);
    kept_free(k);
    close(l.fd);
}

/* Write n bytes at `at` of what was kept. */
static void spoil(const struct launcher *l, off_t at, const void *bytes, size_t n)
{
    assert_int_equal(pwrite(l->fd, bytes, n, at), n);
}

static void spoilt_contents_are_not_taken(void **state)
{
    (void)state;
    struct launcher l = launch();
    const uint64_t zero = 0, huge = UINT64_MAX, two = 2;
    const int32_t labels[] = {CLASSES, -1, INT32_MAX}, classes[] = {CLASSES - 1, -1, 0, INT32_MAX};
    struct dataset d = layout_view(&LAYOUT, (void *)KEPT_HEAD_BYTES); /* where things lie */
    const struct {
        off_t at;
        const void *bytes;
        size_t n;
    } cases[] = {
        {0, &zero, 8}, /* magic */
        {8, &huge, 8}, /* length of the key */
        {8, &zero, 8},
        {16, &two, 8}, /* training samples */
        {16, &huge, 8},
        {32, &huge, 4}, /* rows */
        {56, &classes[0], 4},
        {56, &classes[1], 4},
        {56, &classes[2], 4},
        {56, &classes[3], 4},
        {64, &zero, 4}, /* complete */
        {64, &two, 4},
        {72, &huge, 1}, /* the key */
        {(off_t)(uintptr_t)&d.train.labels[ITEMS - 1], &labels[0], 4},
        {(off_t)(uintptr_t)&d.train.labels[0], &labels[1], 4},
        {(off_t)(uintptr_t)&d.test.labels[ITEMS - 1], &labels[2], 4},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        keep(&l, "file 1", &LAYOUT);
        assert_true(finds(&l, "file 1", &LAYOUT));
        spoil(&l, cases[i].at, cases[i].bytes, cases[i].n);
        if (finds(&l, "file 1", &LAYOUT))
            fail_msg("case %zu was taken", i);
    }
    close(l.fd);
}

/* A whole header, and fewer bytes after it than it announces: to read there would be SIGBUS. */
static void a_file_that_is_too_short_is_not_taken(void **state)
{
    (void)state;
    struct launcher l = launch(), cut = launch();
    char head[4096];

    keep(&l, "file 1", &LAYOUT);
    assert_int_equal(pread(l.fd, head, sizeof(head), 0), sizeof(head));
    spoil(&cut, 0, head, sizeof(head));
    assert_false(finds(&cut, "file 1", &LAYOUT));
    assert_int_equal(ftruncate(cut.fd, (off_t)(KEPT_HEAD_BYTES + layout_bytes(&LAYOUT) - 1)), 0);
    assert_false(finds(&cut, "file 1", &LAYOUT));
    close(l.fd);
    close(cut.fd);
}

static void strangers_are_ignored(void **state)
{
    (void)state;
    static const char *const texts[] = {"",     "/",    "1",     "a/b",           "0/3",
                                        "-1/3", "1/-1", "1/2/3", "99999999999/1", "1/99999999999"};
    struct launcher l = launch(), other;
    char name[] = "/tmp/test-kept-XXXXXX";
    int ends[2];

    assert_null(kept_open(NULL));
    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        assert_null(kept_open(texts[i]));
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    const int fds[] = {memory("another", F_SEAL_SHRINK),
                       memory(CONTRACT_KEPT_DATA_NAME, 0),                           /* may shrink */
                       memory(CONTRACT_KEPT_DATA_NAME, F_SEAL_SHRINK | F_SEAL_GROW), /* cannot be filled */
                       memory(CONTRACT_KEPT_DATA_NAME, F_SEAL_SHRINK | F_SEAL_WRITE),
                       mkstemp(name),
                       open("/dev/null", O_RDWR | O_CLOEXEC),
                       ends[0],
                       ends[1]};
    for (size_t i = 0; i < ARRAY_LEN(fds); i++) {
        name_fd(&other, fds[i]);
        if (kept_open(other.where))
            fail_msg("stranger %zu was taken", i);
        close(fds[i]);
        assert_null(kept_open(other.where)); /* none now */
    }
    unlink(name);
    close(l.fd);
    assert_null(kept_open(l.where));
}

static void a_key_that_is_too_long_is_not_kept(void **state)
{
    (void)state;
    struct launcher l = launch();
    struct kept *k = kept_open(l.where);
    static char text[KEPT_KEY_BYTES + 1];
    struct buf key = BUF_INIT(sizeof(text));
    struct dataset d;
    struct err err;

    memset(text, 'x', sizeof(text));
    assert_int_equal(buf_append(&key, text, sizeof(text), &err), 0);
    assert_false(kept_make(k, &key, &LAYOUT, &d));
    assert_false(kept_find(k, &key, &LAYOUT, &d));
    buf_consume(&key, 1);
    assert_true(kept_make(k, &key, &LAYOUT, &d));
    buf_release(&key);
    kept_free(k);
    close(l.fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(another_key_or_layout_is_not_it),
        cmocka_unit_test(new_data_replace_old_ones),
        cmocka_unit_test(what_was_not_completed_is_not_found),
        cmocka_unit_test(only_one_process_has_it),
        cmocka_unit_test(spoilt_contents_are_not_taken),
        cmocka_unit_test(a_file_that_is_too_short_is_not_taken),
        cmocka_unit_test(strangers_are_ignored),
        cmocka_unit_test(a_key_that_is_too_long_is_not_kept),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
