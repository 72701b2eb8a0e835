/* test_csv.c - tables of numbers: where each cell goes, and where each mistake is. */
#include "files.h"
#include "test.h"

#include "trainer/data/csv.h"

#include <stdio.h>
#include <stdlib.h>

static int setup(void **state)
{
    return files_setup(state, "a.csv");
}

static void put(const struct files_fixture *f, const char *text)
{
    files_write(f->path, text, strlen(text));
}

static void cells_go_to_their_places(void **state)
{
    const struct files_fixture *f = *state;
    float x[6];
    float values[4];
    int32_t labels[2];
    struct csv c;
    struct err err;

    put(f, "a,b,c,d\r\n 1 ,2.5,-3e2,4\r\n\r\n5,6,7,8");
    assert_int_equal(csv_probe(f->path, true, &c, &err), 0);
    assert_true(c.rows == 2 && c.columns == 4);
    assert_int_equal(csv_load(f->path, true, &c,
                              &(struct csv_target){.x = x, .labels = labels, .first = 3, .width = 1}, &err),
                     0);
    const float first[] = {1, 2.5f, -300, 5, 6, 7};
    assert_memory_equal(x, first, sizeof(first));
    assert_true(labels[0] == 4 && labels[1] == 8);
    assert_int_equal(csv_load(f->path, true, &c,
                              &(struct csv_target){.x = x, .values = values, .first = 1, .width = 2}, &err),
                     0);
    const float rest[] = {1, 4, 5, 8};
    const float middle[] = {2.5f, -300, 6, 7};
    assert_memory_equal(x, rest, sizeof(rest));
    assert_memory_equal(values, middle, sizeof(middle));
}

/* Lines that do not end where a read does. */
static void long_files_are_read_in_pieces(void **state)
{
    const struct files_fixture *f = *state;
    enum { ROWS = 200000 };
    cleanup_free char *text = malloc(ROWS * 16);
    cleanup_free float *x = calloc(ROWS, sizeof(*x));
    cleanup_free int32_t *labels = calloc(ROWS, sizeof(*labels));
    cleanup_free uint8_t *packed = malloc(ROWS * 16);
    size_t len = 0;
    struct csv c;
    struct err err;

    for (int i = 0; i < ROWS; i++)
        len += (size_t)sprintf(text + len, "%d,%d\n", i, i % 10);
    assert_true(len > CSV_LINE_MAX);
    files_write(f->path, packed, files_gzip(text, len, packed, ROWS * 16));
    assert_int_equal(csv_probe(f->path, false, &c, &err), 0);
    assert_true(c.rows == ROWS && c.columns == 2);
    assert_int_equal(csv_load(f->path, false, &c,
                              &(struct csv_target){.x = x, .labels = labels, .first = 1, .width = 1}, &err),
                     0);
    for (int i = 0; i < ROWS; i++)
        assert_true(x[i] == (float)i && labels[i] == i % 10);
}

static void refuses_with_line_and_column(void **state)
{
    const struct files_fixture *f = *state;
    static const struct {
        const char *text, *says;
    } cases[] = {
        {"", "rows: 0"},
        {"\n\n", "rows: 0"},
        {"1\n", ":1: 1 columns, expected 2 or more"},
        {"1,2\n\n1,2,3\n", ":3: 3 columns, expected 2 as in the line before"},
        {"1,2\na,3\n", ":2: column 0: \"a\", expected a finite number"},
        {"1,2\n,3\n", ":2: column 0: \"\", expected a finite number"},
        {"1,2\n3,\n", ":2: column 1: \"\", expected a finite number"},
        {"1,2\n3,1.5\n", ":2: column 1: \"1.5\", expected a label"},
        {"1,2\n3,-1\n", ":2: column 1: \"-1\", expected a label"},
        {"1,2\n3,16777216\n", ":2: column 1: \"16777216\", expected a label"},
        {"1,2\n3,1e30\n", ":2: column 1: \"1e30\", expected a label"},
        {"1,2\nnan,1\n", ":2: column 0: \"nan\", expected a finite number"},
        {"1,2\n1e300,1\n", ":2: column 0: \"1e300\", expected a finite number"},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        float x[8];
        int32_t labels[8];
        struct csv c;
        struct err err = {0};
        put(f, cases[i].text);
        if (!csv_probe(f->path, false, &c, &err))
            assert_int_equal(csv_load(f->path, false, &c,
                                      &(struct csv_target){.x = x, .labels = labels, .first = 1, .width = 1},
                                      &err),
                             -1);
        assert_int_equal(err.kind, ERR_INVALID);
        if (!strstr(err.msg, cases[i].says) || !strstr(err.msg, f->path))
            fail_msg("case %zu: \"%s\" lacks \"%s\"", i, err.msg, cases[i].says);
    }
}

static void a_line_without_end_is_refused(void **state)
{
    const struct files_fixture *f = *state;
    cleanup_free char *text = malloc(CSV_LINE_MAX + 100);
    struct csv c;
    struct err err;

    memset(text, '1', CSV_LINE_MAX + 100);
    files_write(f->path, text, CSV_LINE_MAX + 100);
    assert_int_equal(csv_probe(f->path, false, &c, &err), -1);
    assert_non_null(strstr(err.msg, ":1: longer than 1048576 bytes"));
}

static void a_file_that_grew_is_noticed(void **state)
{
    const struct files_fixture *f = *state;
    float x[2];
    int32_t labels[2];
    struct csv c;
    struct err err;
    static const char *const now[] = {"1,2\n3,4\n5,6\n", "1,2\n", "1,2\n3,4,5\n"};

    for (size_t i = 0; i < ARRAY_LEN(now); i++) {
        put(f, "1,2\n3,4\n");
        assert_int_equal(csv_probe(f->path, false, &c, &err), 0);
        put(f, now[i]);
        assert_int_equal(csv_load(f->path, false, &c,
                                  &(struct csv_target){.x = x, .labels = labels, .first = 1, .width = 1},
                                  &err),
                         -1);
        assert_non_null(strstr(err.msg, "changed while it was read"));
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, files_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(cells_go_to_their_places),     TEST(long_files_are_read_in_pieces),
        TEST(refuses_with_line_and_column), TEST(a_line_without_end_is_refused),
        TEST(a_file_that_grew_is_noticed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
