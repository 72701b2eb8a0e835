/* test_tokens.c - which tokens a window holds, over several files of all three kinds; hostile headers. */
#include "files.h"
#include "shard.h"
#include "test.h"

#include "trainer/data/npy.h"
#include "trainer/data/tokens.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static int setup(void **state)
{
    return files_setup(state, "*");
}

static void put(const struct files_fixture *f, const char *name, const void *bytes, size_t len)
{
    char path[PATH_MAX + 64];

    snprintf(path, sizeof(path), "%s/%s", f->folder, name);
    files_write(path, bytes, len);
}

/* Tokens first, first + 1, ... as little-endian uint16 after `start`. */
static void put_tokens(const struct files_fixture *f, const char *name, const void *start, size_t start_len,
                       int first, int n)
{
    uint8_t bytes[4096];

    if (start_len)
        memcpy(bytes, start, start_len);
    for (int i = 0; i < n; i++) {
        bytes[start_len + 2 * (size_t)i] = (uint8_t)(first + i);
        bytes[start_len + 2 * (size_t)i + 1] = (uint8_t)((first + i) >> 8);
    }
    put(f, name, bytes, start_len + 2 * (size_t)n);
}

static void put_shard(const struct files_fixture *f, const char *name, int first, int n)
{
    uint8_t header[TOKENS_SHARD_HEADER];

    shard_header(n, header);
    put_tokens(f, name, header, sizeof(header), first, n);
}

/* An array's header of that version and dictionary, and zeros for `len` bytes of elements. */
static size_t make_npy(int version, const char *dict, size_t len, uint8_t out[static 512])
{
    const size_t start = version == 1 ? 10 : 12;
    const size_t n = strlen(dict);

    memset(out, 0, 512);
    memcpy(out, "\x93NUMPY", 6);
    out[6] = (uint8_t)version;
    out[8] = (uint8_t)n;
    memcpy(out + start, dict, n);
    return start + n + len;
}

static void put_npy(const struct files_fixture *f, const char *name, const char *shape, int first, int n)
{
    uint8_t start[512];
    char dict[128];

    snprintf(dict, sizeof(dict), "{'descr': '<u2', 'fortran_order': False, 'shape': %s, }\n", shape);
    put_tokens(f, name, start, make_npy(1, dict, 0, start), first, n);
}

static struct tokens *opened(const struct files_fixture *f, int32_t time)
{
    struct err err;
    struct tokens *t = tokens_open(f->path, time, &err);

    if (!t)
        fail_msg("%s", err.msg);
    return t;
}

static void expect_window(const struct tokens *t, int64_t window, int first, int n)
{
    float x[8];
    int32_t next[8];
    struct err err;

    assert_int_equal(tokens_window(t, window, 1 << 16, x, next, &err), 0);
    for (int i = 0; i < n; i++) {
        assert_true(x[i] == (float)(first + i));
        assert_int_equal(next[i], first + i + 1);
    }
}

/* 9 tokens are two windows of four and one behind them; the files stand in their names' order, and no window spans two. */
static void windows_of_all_kinds(void **state)
{
    struct files_fixture *f = *state;

    put_npy(f, "b.npy", "(13,)", 40000, 13);
    put_shard(f, "a.bin", 1000, 9);
    put(f, "c.txt", "abcdefgh", 8);
    put_shard(f, "aa.bin", 7, 4); /* too short for any */
    cleanup_tokens struct tokens *t = opened(f, 4);
    assert_int_equal(tokens_windows(t), 2 + 0 + 3 + 1);
    assert_int_equal(tokens_vocab(t), 0);
    expect_window(t, 0, 1000, 4);
    expect_window(t, 1, 1004, 4);
    expect_window(t, 2, 40000, 4);
    expect_window(t, 4, 40008, 4);
    expect_window(t, 5, 'a', 4);
}

/* As nanoGPT's data/openwebtext/prepare.py writes them. */
static void uint16_alone_are_tokens(void **state)
{
    struct files_fixture *f = *state;

    put_tokens(f, "train.bin", NULL, 0, 640, 2000);
    cleanup_tokens struct tokens *t = opened(f, 4);
    assert_int_equal(tokens_windows(t), 1999 / 4);
    assert_int_equal(tokens_vocab(t), 0);
    expect_window(t, 0, 640, 4);
    expect_window(t, 498, 640 + 4 * 498, 4);
}

static void plain_bytes_have_a_vocabulary(void **state)
{
    struct files_fixture *f = *state;
    struct err err;

    put(f, "poem", "\xff\x80 two", 6);
    cleanup_tokens struct tokens *t = opened(f, 2);
    assert_int_equal(tokens_vocab(t), TOKENS_BYTES_VOCAB);
    float x[2];
    int32_t next[2];
    assert_int_equal(tokens_window(t, 0, 256, x, next, &err), 0);
    assert_true(x[0] == 255 && x[1] == 128 && next[1] == ' ');
}

static void a_byte_order_mark_is_no_text(void **state)
{
    struct files_fixture *f = *state;
    struct err err;

    put(f, "a",
        "\xef\xbb\xbf"
        "abcdefgh",
        11);
    cleanup_tokens struct tokens *t = opened(f, 4);
    assert_int_equal(tokens_windows(t), 1);
    expect_window(t, 0, 'a', 4);
    put(f, "wide",
        "\xff\xfe"
        "a\0b\0",
        6);
    assert_null(tokens_open(f->path, 4, &err));
    assert_non_null(strstr(err.msg, "wide: UTF-16 by its first two bytes, expected UTF-8"));
}

static void tokens_beyond_the_vocabulary_are_named(void **state)
{
    struct files_fixture *f = *state;
    float x[4];
    int32_t next[4];
    struct err err;

    put_shard(f, "a.bin", 50250, 20);
    cleanup_tokens struct tokens *t = opened(f, 4);
    assert_int_equal(tokens_window(t, 0, 50257, x, next, &err), 0);
    assert_int_equal(tokens_window(t, 1, 50257, x, next, &err), -1);
    assert_non_null(strstr(err.msg, "a.bin: token 7: 50257, expected 0..50256"));
}

/* More than 4 GiB: places are 64 bits wide everywhere. Sparse: only its end takes space. */
static void large_shards(void **state)
{
    struct files_fixture *f = *state;
    const int64_t count = INT64_C(2200000001);
    const off_t end = TOKENS_SHARD_HEADER + 2 * (off_t)count;
    uint8_t header[TOKENS_SHARD_HEADER];
    char path[PATH_MAX + 64];
    struct err err;

    snprintf(path, sizeof(path), "%s/a.bin", f->folder);
    cleanup_close int fd = open(path, O_RDWR | O_CREAT, 0600);
    shard_header(count, header);
    assert_true(fd >= 0 && write(fd, header, sizeof(header)) == sizeof(header));
    if (ftruncate(fd, end))
        skip(); /* a file system of small files */
    assert_int_equal(pwrite(fd, "\x05\x00\x06\x00\x07\x00", 6, end - 6), 6);
    cleanup_tokens struct tokens *t = tokens_open(path, 4, &err);
    assert_non_null(t);
    assert_int_equal(tokens_windows(t), 550000000);
    float x[4];
    int32_t next[4];
    assert_int_equal(tokens_window(t, tokens_windows(t) - 1, 8, x, next, &err), 0);
    assert_true(x[0] == 0 && x[2] == 5 && x[3] == 6 && next[2] == 6 && next[3] == 7);
}

static void refuse(struct files_fixture *f, const char *name, enum err_kind kind, const char *want)
{
    char path[PATH_MAX + 64];
    struct err err = {0};

    snprintf(path, sizeof(path), "%s/%s", f->folder, name);
    struct tokens *t = tokens_open(path, 4, &err);
    if (t || err.kind != kind || !strstr(err.msg, want))
        fail_msg("%s: \"%s\", expected \"%s\"", name, t ? "opened" : err.msg, want);
}

/* A shard whose header has `value` as its word `at`, with room for two tokens behind it. */
static void refuse_shard(struct files_fixture *f, int at, uint32_t value, const char *want)
{
    uint8_t header[TOKENS_SHARD_HEADER + 4] = {0};

    shard_header(2, header);
    le_put(header + 4 * at, value, 4);
    put(f, "a.bin", header, sizeof(header));
    refuse(f, "a.bin", ERR_INVALID, want);
}

static void hostile_files_are_refused(void **state)
{
    struct files_fixture *f = *state;
    uint8_t zeros[TOKENS_SHARD_HEADER] = {0};
    char path[PATH_MAX + 64];

    refuse(f, "none-*.bin", ERR_NOT_FOUND, "none-*.bin: no such file");
    put(f, "empty.bin", "", 0);
    refuse(f, "empty.bin", ERR_INVALID, "expected a file that is not empty");
    put(f, "short.bin", zeros, 1023);
    refuse(f, "short.bin", ERR_INVALID, "short.bin: size: 1023 bytes, expected a header of 1024");
    put_tokens(f, "odd.bin", "x", 1, 640, 1000);
    refuse(f, "odd.bin", ERR_INVALID, "odd.bin: magic: ");
    refuse_shard(f, 0, 20240801, "a.bin: magic: 20240801, expected 20240520"); /* llm.c's uint32 */
    refuse_shard(f, 1, 2, "a.bin: version: 2, expected 1");
    refuse_shard(f, 2, 0xffffffff, "size: 1028 bytes, expected 8589935614 for the 4294967295 tokens");
    refuse_shard(f, 2, 1, "size: 1028 bytes, expected 1026 for the 1 tokens");
    put_shard(f, "few.bin", 0, 4);
    refuse(f, "few.bin", ERR_INVALID, "4 tokens in 1 files, expected more than 4 in one");
    put_npy(f, "cut.npy", "(10,)", 0, 9);
    refuse(f, "cut.npy", ERR_INVALID, "cut.npy: size:");
    snprintf(path, sizeof(path), "%s/folder", f->folder);
    assert_int_equal(mkdir(path, 0700), 0);
    refuse(f, "folder", ERR_INVALID, "expected a file");
    snprintf(path, sizeof(path), "%s/fifo", f->folder);
    assert_int_equal(mkfifo(path, 0600), 0);
    refuse(f, "fifo", ERR_INVALID, "expected a file"); /* nobody writes to it */
}

static void npy_of_every_version_is_taken(void **state)
{
    static const char dict[] = "{'descr': '<u2', 'fortran_order': False, 'shape': (3,), }   \n";
    uint8_t bytes[512];

    (void)state;
    for (int version = 1; version <= 3; version++) {
        struct err err = {0};
        size_t first = 0;
        int64_t count = 0;
        size_t len = make_npy(version, dict, 6, bytes);
        assert_int_equal(npy_vector("a.npy", bytes, len, &first, &count, &err), 0);
        assert_int_equal(count, 3);
        assert_int_equal(first, len - 6);
    }
}

static void other_npy_are_refused(void **state)
{
    static const struct {
        const char *dict, *says;
    } cases[] = {
        {"{'descr': '>u2', 'fortran_order': False, 'shape': (2,), }", "descr: '>u2', expected a vector"},
        {"{'descr': '<i8', 'fortran_order': False, 'shape': (2,), }", "descr: '<i8', expected a vector"},
        {"{'descr': [('a', '<u2')], 'fortran_order': False, 'shape': (2,), }", "descr: [('a'"},
        {"{'fortran_order': False, 'shape': (2,), }", "descr: missing"},
        {"{'descr': '<u2', 'fortran_order': False, }", "shape: missing"},
        {"{'descr': '<u2', 'fortran_order': False, 'shape': (), }", "shape: (), expected a vector"},
        {"{'descr': '<u2', 'fortran_order': False, 'shape': (0,), }", "shape: (0,)"},
        {"{'descr': '<u2', 'fortran_order': False, 'shape': (-1,), }", "shape: (-1,)"},
        {"{'descr': '<u2', 'fortran_order': False, 'shape': (1, 2), }", "shape: (1, 2), expected a vector"},
        {"{'descr': '<u2', 'fortran_order': False, 'shape': (99999999999999999999,), }", "shape: (999"},
        {"{'descr': '<u2', 'fortran_order': False, 'shape': (2", "shape: (2, expected a vector"},
        {"{'descr': '<u2', 'fortran_order': False, 'shape': (1,), }", "size: "},
        {"{'descr': '<u2', 'fortran_order': False, 'shape': (3,), }", "size: "},
        {"{'descr': '<u2', 'fortran_order': False, 'shape': (274877906944,), }", "size: "},
    };
    uint8_t bytes[512];

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct err err = {0};
        size_t first;
        int64_t count;
        size_t len = make_npy(1, cases[i].dict, 4, bytes);
        assert_int_equal(npy_vector("a.npy", bytes, len, &first, &count, &err), -1);
        assert_int_equal(err.kind, ERR_INVALID);
        if (!strstr(err.msg, cases[i].says) || !strstr(err.msg, "a.npy: "))
            fail_msg("case %zu: \"%s\" lacks \"%s\"", i, err.msg, cases[i].says);
    }
}

/* Cut anywhere, or with any header byte turned over: an answer, and nothing is read behind the end. */
static void damaged_npy_are_survived(void **state)
{
    uint8_t good[512];
    const size_t len = make_npy(2, "{'descr': '<u2', 'fortran_order': False, 'shape': (4,), }\n", 8, good);

    (void)state;
    for (size_t i = 0; i < 2 * len; i++) {
        const bool cut = i < len;
        const size_t n = cut ? i : len;
        uint8_t *exact = malloc(n + !n);
        struct err err = {0};
        size_t first = 0;
        int64_t count = 0;
        assert_non_null(exact);
        memcpy(exact, good, n);
        if (!cut)
            exact[i - len] ^= 0xff;
        if (!npy_vector("a.npy", exact, n, &first, &count, &err))
            assert_int_equal(first + 2 * (uint64_t)count, n);
        else
            assert_int_equal(err.kind, ERR_INVALID);
        assert_true(!cut || err.kind == ERR_INVALID);
        free(exact);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(windows_of_all_kinds, setup, files_teardown),
        cmocka_unit_test_setup_teardown(uint16_alone_are_tokens, setup, files_teardown),
        cmocka_unit_test_setup_teardown(plain_bytes_have_a_vocabulary, setup, files_teardown),
        cmocka_unit_test_setup_teardown(a_byte_order_mark_is_no_text, setup, files_teardown),
        cmocka_unit_test_setup_teardown(tokens_beyond_the_vocabulary_are_named, setup, files_teardown),
        cmocka_unit_test_setup_teardown(large_shards, setup, files_teardown),
        cmocka_unit_test_setup_teardown(hostile_files_are_refused, setup, files_teardown),
        cmocka_unit_test(npy_of_every_version_is_taken),
        cmocka_unit_test(other_npy_are_refused),
        cmocka_unit_test(damaged_npy_are_survived),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
