/* test_idx.c - headers that lie, files of every wrong length, both kinds, both forms. */
#include "files.h"
#include "test.h"
#include "trainer/data/idx.h"

enum { ITEMS = 3, ROWS = 2, COLS = 4, PAYLOAD = ITEMS * ROWS * COLS, FILE_LEN = 16 + PAYLOAD, BIG = 4096 };

static uint8_t file[FILE_LEN + 1], got[PAYLOAD];

static int setup(void **state)
{
    files_big_endian(file, IDX_IMAGES);
    files_big_endian(file + 4, ITEMS);
    files_big_endian(file + 8, ROWS);
    files_big_endian(file + 12, COLS);
    for (size_t i = 0; i < PAYLOAD; i++)
        file[16 + i] = (uint8_t)(i * 7);
    return files_setup(state, "idx");
}

static int probe_and_load(struct files_fixture *f, enum idx_kind kind, struct err *err)
{
    struct idx_shape shape;

    if (idx_probe(f->path, kind, &shape, err) < 0)
        return -1;
    assert_true(kind == IDX_LABELS || (shape.items == ITEMS && shape.rows == ROWS && shape.cols == COLS));
    assert_int_equal(idx_bytes(&shape), PAYLOAD);
    return idx_load(f->path, kind, &shape, got, err);
}

static void write_gz(struct files_fixture *f, const uint8_t *bytes, size_t len)
{
    uint8_t gz[BIG];

    files_write(f->path, gz, files_gzip(bytes, len, gz, sizeof(gz)));
}

static void test_labels(void **state)
{
    struct files_fixture *f = *state;
    uint8_t labels[8 + PAYLOAD];
    struct err err = {0};

    files_big_endian(labels, IDX_LABELS);
    files_big_endian(labels + 4, PAYLOAD);
    memset(labels + 8, 9, PAYLOAD);
    files_write(f->path, labels, sizeof(labels));
    assert_int_equal(probe_and_load(f, IDX_LABELS, &err), 0);
    assert_memory_equal(got, labels + 8, PAYLOAD);
    assert_int_equal(probe_and_load(f, IDX_IMAGES, &err), -1);
    assert_non_null(strstr(err.msg, "magic number: 2049, expected 2051 (images)"));
}

/* Files of every length, plain and compressed: the right one is read, the others are refused. */
static void test_every_length(void **state)
{
    struct files_fixture *f = *state;

    for (size_t len = 0; len <= FILE_LEN + 1; len++) {
        for (int gz = 0; gz < 2; gz++) {
            struct err err = {0};
            if (gz)
                write_gz(f, file, len);
            else
                files_write(f->path, file, len);
            memset(got, 0, PAYLOAD);
            int rc = probe_and_load(f, IDX_IMAGES, &err);
            assert_int_equal(rc, len == FILE_LEN ? 0 : -1);
            if (!rc)
                assert_memory_equal(got, file + 16, PAYLOAD);
            else if (err.kind != ERR_INVALID || !strstr(err.msg, f->path))
                fail_msg("%zu: %s", len, err.msg);
        }
    }
}

static void test_header_fields(void **state)
{
    static const struct {
        size_t at;
        uint32_t value;
        const char *names;
    } cases[] = {
        {0, 2049, "magic number: 2049, expected 2051 (images)"},
        {0, 0x1f8b0800, "damaged gzip stream"},
        {4, 0, "items: 0, expected 1..2147483647"},
        {4, 0x80000000U, "items: 2147483648"},
        {4, 0xffffffffU, "items: 4294967295"},
        {4, 2, "size: 40 bytes, expected 32"},
        {4, 4, "size: 40 bytes, expected 48"},
        {4, 0x7fffffff, "payload: 17179869176 bytes"},
        {8, 0, "rows: 0, expected 1..65536"},
        {8, 65537, "rows: 65537"},
        {8, 65536, "size: 40 bytes"},
        {12, 0, "columns: 0"},
        {12, 0xffffffffU, "columns: 4294967295"},
    };
    struct files_fixture *f = *state;

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct err err = {0};
        struct idx_shape shape = {.items = 42};
        uint8_t bad[FILE_LEN];
        memcpy(bad, file, FILE_LEN);
        files_big_endian(bad + cases[i].at, cases[i].value);
        files_write(f->path, bad, FILE_LEN);
        assert_int_equal(idx_probe(f->path, IDX_IMAGES, &shape, &err), -1);
        assert_int_equal(err.kind, ERR_INVALID);
        assert_non_null(strstr(err.msg, cases[i].names));
        assert_non_null(strstr(err.msg, f->path));
        assert_int_equal(shape.items, 42);
    }
}

/* A small compressed file cannot promise gigabytes. */
static void test_compressed_promise(void **state)
{
    struct files_fixture *f = *state;
    struct idx_shape shape;
    struct err err = {0};

    files_big_endian(file + 4, 1 << 24);
    write_gz(f, file, FILE_LEN);
    assert_int_equal(idx_probe(f->path, IDX_IMAGES, &shape, &err), -1);
    assert_non_null(strstr(err.msg, "at most"));
    assert_non_null(strstr(err.msg, "expected 134217744 by its header"));
}

static void test_changed_between(void **state)
{
    struct files_fixture *f = *state;
    struct idx_shape shape;
    struct err err = {0};

    files_write(f->path, file, FILE_LEN);
    assert_int_equal(idx_probe(f->path, IDX_IMAGES, &shape, &err), 0);
    shape.items--;
    assert_int_equal(idx_load(f->path, IDX_IMAGES, &shape, got, &err), -1);
    assert_non_null(strstr(err.msg, "changed"));
    assert_int_equal(unlink(f->path), 0);
    assert_int_equal(idx_load(f->path, IDX_IMAGES, &shape, got, &err), -1);
    assert_int_equal(err.kind, ERR_NOT_FOUND);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_labels, setup, files_teardown),
        cmocka_unit_test_setup_teardown(test_every_length, setup, files_teardown),
        cmocka_unit_test_setup_teardown(test_header_fields, setup, files_teardown),
        cmocka_unit_test_setup_teardown(test_compressed_promise, setup, files_teardown),
        cmocka_unit_test_setup_teardown(test_changed_between, setup, files_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
