/* test_tokens.c - which tokens a window holds, over several files of all three kinds; hostile headers. */
#include "files.h"
#include "shard.h"
#include "test.h"

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

/* Tokens first, first + 1, ... as little-endian uint16 behind what `start` says. */
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

static void put_npy(const struct files_fixture *f, const char *name, const char *descr, const char *shape,
                    int first, int n)
{
    char start[128] = "\x93NUMPY\1";
    int len = snprintf(start + 10, sizeof(start) - 10,
                       "{'descr': '%s', 'fortran_order': False, 'shape': %s, }\n", descr, shape);

    start[8] = (char)len;
    put_tokens(f, name, start, 10 + (size_t)len, first, n);
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
    struct err err;

    put_npy(f, "b.npy", "<u2", "(13,)", 40000, 13);
    put_shard(f, "a.bin", 1000, 9);
    put(f, "c.txt", "abcdefgh", 8);
    put_shard(f, "aa.bin", 7, 4); /* too short for any */
    cleanup_tokens struct tokens *t = tokens_open(f->path, 4, &err);
    assert_non_null(t);
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
    struct err err;

    put_tokens(f, "train.bin", NULL, 0, 640, 2000);
    cleanup_tokens struct tokens *t = tokens_open(f->path, 4, &err);
    if (!t)
        fail_msg("%s", err.msg);
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
    cleanup_tokens struct tokens *t = tokens_open(f->path, 2, &err);
    assert_non_null(t);
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
    cleanup_tokens struct tokens *t = tokens_open(f->path, 4, &err);
    assert_non_null(t);
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
    cleanup_tokens struct tokens *t = tokens_open(f->path, 4, &err);
    assert_non_null(t);
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

static void hostile_files_are_refused(void **state)
{
    struct files_fixture *f = *state;
    uint8_t header[TOKENS_SHARD_HEADER + 4] = {0};

    refuse(f, "none-*.bin", ERR_NOT_FOUND, "none-*.bin: no such file");
    put(f, "empty.bin", "", 0);
    refuse(f, "empty.bin", ERR_INVALID, "expected a file that is not empty");
    put(f, "short.bin", header, 1023);
    refuse(f, "short.bin", ERR_INVALID, "short.bin: size: 1023 bytes, expected a header of 1024");
    header[0] = 0xa1, header[1] = 0xd9, header[2] = 0x34, header[3] = 1; /* 20240801: llm.c's uint32 */
    put(f, "magic.bin", header, sizeof(header));
    refuse(f, "magic.bin", ERR_INVALID, "magic.bin: magic: 20240801, expected 20240520");
    put_tokens(f, "odd.bin", "x", 1, 640, 1000);
    refuse(f, "odd.bin", ERR_INVALID, "odd.bin: magic: ");
    shard_header(2, header);
    header[4] = 2;
    put(f, "version.bin", header, sizeof(header));
    refuse(f, "version.bin", ERR_INVALID, "version.bin: version: 2, expected 1");
    shard_header(0xffffffff, header);
    put(f, "huge.bin", header, sizeof(header));
    refuse(f, "huge.bin", ERR_INVALID, "size: 1028 bytes, expected 8589935614 for the 4294967295 tokens");
    shard_header(1, header);
    put(f, "long.bin", header, sizeof(header));
    refuse(f, "long.bin", ERR_INVALID, "size: 1028 bytes, expected 1026 for the 1 tokens");
    put_shard(f, "few.bin", 0, 4);
    refuse(f, "few.bin", ERR_INVALID, "4 tokens in 1 files, expected more than 4 in one");
    put_npy(f, "matrix.npy", "<u2", "(3, 3)", 0, 9);
    refuse(f, "matrix.npy", ERR_INVALID, "expected a vector of uint16");
    put_npy(f, "wide.npy", "<i4", "(9,)", 0, 18);
    refuse(f, "wide.npy", ERR_INVALID, "expected a vector of uint16");
    put_npy(f, "cut.npy", "<u2", "(10,)", 0, 9);
    refuse(f, "cut.npy", ERR_INVALID, "cut.npy: size:");
    char folder[PATH_MAX + 64];
    snprintf(folder, sizeof(folder), "%s/folder", f->folder);
    assert_int_equal(mkdir(folder, 0700), 0);
    refuse(f, "folder", ERR_INVALID, "expected a file");
    snprintf(folder, sizeof(folder), "%s/fifo", f->folder);
    assert_int_equal(mkfifo(folder, 0600), 0);
    alarm(20); /* nobody writes to it */
    refuse(f, "fifo", ERR_INVALID, "expected a file");
    alarm(0);
}

static void compressed_arrays_are_refused(void **state)
{
    struct files_fixture *f = *state;
    char start[256] = "\x93NUMPY\1";
    uint8_t packed[512];
    int len = snprintf(start + 10, 100, "{'descr': '<u2', 'fortran_order': False, 'shape': (40,), }\n");

    start[8] = (char)len;
    put(f, "packed.npy", packed, files_gzip(start, 10 + (size_t)len + 80, packed, sizeof(packed)));
    refuse(f, "packed.npy", ERR_INVALID, "gzip-compressed (gunzip it), expected a NumPy array");
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
        cmocka_unit_test_setup_teardown(compressed_arrays_are_refused, setup, files_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
