/* test_npy.c - arrays as NumPy writes them: every type and version taken, everything else refused by name. */
#include "files.h"
#include "test.h"

#include "trainer/data/npy.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

static int setup(void **state)
{
    return files_setup(state, "a.npy");
}

/* A file with that dictionary: `len` bytes of elements behind it. */
static size_t make(int version, const char *dict, const void *elements, size_t len, uint8_t *out)
{
    size_t start = version == 1 ? 10 : 12;
    size_t n = strlen(dict);

    memcpy(out, "\x93NUMPY", 6);
    out[6] = (uint8_t)version;
    out[7] = 0;
    memset(out + 8, 0, 4);
    out[8] = (uint8_t)n;
    out[9] = (uint8_t)(n >> 8);
    memcpy(out + start, dict, n);
    memcpy(out + start + n, elements, len);
    return start + n + len;
}

static void put(const struct files_fixture *f, int version, const char *dict, const void *elements,
                size_t len)
{
    uint8_t bytes[8192];

    files_write(f->path, bytes, make(version, dict, elements, len, bytes));
}

static void takes_every_type_and_version(void **state)
{
    const struct files_fixture *f = *state;
    const uint8_t u1[] = {0, 1, 200};
    const int32_t i4[] = {0, 1, 200};
    const int64_t i8[] = {0, 1, 200};
    const float f4[] = {0, 1, 200};
    const double f8[] = {0, 1, 200};
    const struct {
        const char *descr;
        const void *bytes;
        size_t len;
        enum npy_type type;
        bool labels;
    } cases[] = {
        {"|u1", u1, sizeof(u1), NPY_U8, true},   {"<i4", i4, sizeof(i4), NPY_I32, true},
        {"<i8", i8, sizeof(i8), NPY_I64, true},  {"<f4", f4, sizeof(f4), NPY_F32, false},
        {"<f8", f8, sizeof(f8), NPY_F64, false},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases) * 3; i++) {
        char dict[128];
        struct npy n;
        struct err err = {0};
        float floats[3];
        int32_t labels[3];
        const size_t c = i / 3;
        snprintf(dict, sizeof(dict), "{'descr': '%s', 'fortran_order': False, 'shape': (3,), }      \n",
                 cases[c].descr);
        put(f, 1 + (int)(i % 3), dict, cases[c].bytes, cases[c].len);
        assert_int_equal(npy_probe(f->path, &n, &err), 0);
        assert_true(n.type == cases[c].type && n.dims == 1 && n.dim[0] == 3 && n.count == 3);
        assert_int_equal(npy_load(f->path, &n, NPY_AS_FLOATS, floats, &err), 0);
        assert_true(floats[0] == 0 && floats[1] == 1 && floats[2] == 200);
        assert_int_equal(npy_load(f->path, &n, NPY_AS_LABELS, labels, &err), cases[c].labels ? 0 : -1);
        if (cases[c].labels)
            assert_true(labels[0] == 0 && labels[1] == 1 && labels[2] == 200);
        else
            assert_non_null(strstr(err.msg, "expected integers, as labels are"));
    }
}

static void takes_gzip_and_many_blocks(void **state)
{
    const struct files_fixture *f = *state;
    enum { N = 20000 };
    cleanup_free int32_t *v = calloc(N, sizeof(*v));
    cleanup_free uint8_t *bytes = malloc(N * 4 + 256);
    cleanup_free uint8_t *packed = malloc(N * 4 + 1024);
    cleanup_free float *got = calloc(N, sizeof(*got));
    struct npy n;
    struct err err;

    for (int i = 0; i < N; i++)
        v[i] = i * 7;
    size_t len =
        make(1, "{'descr': '<i4', 'fortran_order': False, 'shape': (100, 2, 10, 10), }\n", v, N * 4, bytes);
    files_write(f->path, packed, files_gzip(bytes, len, packed, N * 4 + 1024));
    assert_int_equal(npy_probe(f->path, &n, &err), 0);
    assert_true(n.dims == 4 && n.dim[1] == 2 && n.count == N);
    assert_int_equal(npy_load(f->path, &n, NPY_AS_FLOATS, got, &err), 0);
    for (int i = 0; i < N; i++)
        assert_true(got[i] == (float)v[i]);
}

static void refuses_what_it_does_not_know(void **state)
{
    const struct files_fixture *f = *state;
    static const struct {
        const char *dict, *says;
    } cases[] = {
        {"{'descr': '>f4', 'fortran_order': False, 'shape': (1,), }", "descr: '>f4', expected '|u1'"},
        {"{'descr': '<f2', 'fortran_order': False, 'shape': (1,), }", "descr: '<f2', expected"},
        {"{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,), }", "descr: [('a'"},
        {"{'fortran_order': False, 'shape': (1,), }", "descr: missing"},
        {"{'descr': '<f4', 'fortran_order': True, 'shape': (1,), }", "fortran_order: True, expected False"},
        {"{'descr': '<f4', 'shape': (1,), }", "fortran_order: none, expected False"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (), }", "shape: ()"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (0,), }", "shape: (0,)"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (-1,), }", "shape: (-1,)"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1), }", "shape: (1,1,1,1,1)"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2147483647,2147483647), }",
         "shape: more than 274877906944 elements"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1", "shape: expected a list"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }", "size: "},
        {"{'descr': '|u1', 'fortran_order': False, 'shape': (3,), }", "size: "},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct npy n;
        struct err err = {0};
        put(f, 1, cases[i].dict, "\0\0\0\0", 4);
        assert_int_equal(npy_probe(f->path, &n, &err), -1);
        assert_int_equal(err.kind, ERR_INVALID);
        if (!strstr(err.msg, cases[i].says) || !strstr(err.msg, f->path))
            fail_msg("case %zu: \"%s\" lacks \"%s\"", i, err.msg, cases[i].says);
    }
    struct npy n;
    struct err err = {0};
    assert_int_equal(npy_probe("/nonexistent.npy", &n, &err), -1);
    assert_int_equal(err.kind, ERR_NOT_FOUND);
}

/* Cut anywhere, or with any header byte turned over: an answer, never a crash. */
static void survives_damage(void **state)
{
    const struct files_fixture *f = *state;
    const float v[] = {1, 2, 3, 4};
    uint8_t good[256];
    size_t len = make(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2), }\n", v, sizeof(v), good);

    for (size_t cut = 0; cut < len; cut++) {
        struct npy n;
        struct err err = {0};
        files_write(f->path, good, cut);
        assert_int_equal(npy_probe(f->path, &n, &err), -1);
    }
    for (size_t i = 0; i < len * 8; i++) {
        uint8_t bad[256];
        float out[4096];
        struct npy n;
        struct err err;
        memcpy(bad, good, len);
        bad[i / 8] ^= (uint8_t)(1u << i % 8);
        files_write(f->path, bad, len);
        if (!npy_probe(f->path, &n, &err) && n.count <= 4096)
            (void)!npy_load(f->path, &n, NPY_AS_FLOATS, out, &err);
    }
}

static void names_the_element(void **state)
{
    const struct files_fixture *f = *state;
    const double bad[] = {1, 1e300};
    const double nan[] = {NAN, 1};
    const int64_t negative[] = {3, -1};
    struct npy n;
    struct err err = {0};
    float out[2];
    int32_t labels[2];

    put(f, 1, "{'descr': '<f8', 'fortran_order': False, 'shape': (2,), }", bad, sizeof(bad));
    assert_int_equal(npy_probe(f->path, &n, &err), 0);
    assert_int_equal(npy_load(f->path, &n, NPY_AS_FLOATS, out, &err), -1);
    assert_non_null(strstr(err.msg, "element 1: 1e+300, expected a finite number"));
    put(f, 1, "{'descr': '<f8', 'fortran_order': False, 'shape': (2,), }", nan, sizeof(nan));
    assert_int_equal(npy_load(f->path, &n, NPY_AS_FLOATS, out, &err), -1);
    assert_non_null(strstr(err.msg, "element 0: "));
    assert_int_equal(npy_load(f->path, &n, NPY_AS_BYTES, out, &err), -1);
    assert_non_null(strstr(err.msg, "expected '|u1'"));
    put(f, 1, "{'descr': '<i8', 'fortran_order': False, 'shape': (2,), }", negative, sizeof(negative));
    assert_int_equal(npy_load(f->path, &n, NPY_AS_FLOATS, out, &err), -1);
    assert_non_null(strstr(err.msg, "changed while it was read"));
    assert_int_equal(npy_probe(f->path, &n, &err), 0);
    assert_int_equal(npy_load(f->path, &n, NPY_AS_LABELS, labels, &err), -1);
    assert_non_null(strstr(err.msg, "element 1: -1, expected a label 0..16777215"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, files_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(takes_every_type_and_version),
        TEST(takes_gzip_and_many_blocks),
        TEST(refuses_what_it_does_not_know),
        TEST(survives_damage),
        TEST(names_the_element),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
