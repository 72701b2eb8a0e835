/* test_npy.c - headers of NumPy arrays: a vector of uint16 is taken, everything else is refused by name. */
#include "test.h"

#include "trainer/data/npy.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A file with that dictionary and `len` bytes of elements. */
static size_t make(int version, const char *dict, size_t len, uint8_t out[static 512])
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

static void a_vector_of_every_version_is_taken(void **state)
{
    static const char dict[] = "{'descr': '<u2', 'fortran_order': False, 'shape': (3,), }   \n";
    uint8_t bytes[512];

    (void)state;
    for (int version = 1; version <= 3; version++) {
        struct err err = {0};
        size_t first = 0;
        int64_t count = 0;
        size_t len = make(version, dict, 6, bytes);
        assert_int_equal(npy_vector("a.npy", bytes, len, &first, &count, &err), 0);
        assert_int_equal(count, 3);
        assert_int_equal(first, len - 6);
    }
}

static void other_arrays_are_refused(void **state)
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
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct err err = {0};
        size_t first;
        int64_t count;
        size_t len = make(1, cases[i].dict, 4, bytes);
        assert_int_equal(npy_vector("a.npy", bytes, len, &first, &count, &err), -1);
        assert_int_equal(err.kind, ERR_INVALID);
        if (!strstr(err.msg, cases[i].says) || !strstr(err.msg, "a.npy: "))
            fail_msg("case %zu: \"%s\" lacks \"%s\"", i, err.msg, cases[i].says);
    }
}

/* Cut anywhere, or with any header byte turned over: an answer, and nothing is read behind the end. */
static void damage_is_survived(void **state)
{
    uint8_t good[512];
    const size_t len = make(2, "{'descr': '<u2', 'fortran_order': False, 'shape': (4,), }\n", 8, good);

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
        cmocka_unit_test(a_vector_of_every_version_is_taken),
        cmocka_unit_test(other_arrays_are_refused),
        cmocka_unit_test(damage_is_survived),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
