/* test_source.c - one way in for every format: what lands in memory, and files that do not fit each other. */
#include "files.h"
#include "test.h"

#include "trainer/data/source.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>

struct fixture {
    char folder[PATH_MAX];
    struct data_spec spec;
    struct dataset set;
    void *mem;
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));

    files_folder(f->folder);
    f->spec = (struct data_spec){.stats = 1, .std = {1}, .columns = 1, .target = -1};
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    files_remove(f->folder);
    free(f->mem);
    free(f);
    return 0;
}

static void put(const struct fixture *f, const char *name, const void *bytes, size_t len)
{
    char path[PATH_MAX + 32];

    snprintf(path, sizeof(path), "%s/%s", f->folder, name);
    files_write(path, bytes, len);
}

static void put_npy(const struct fixture *f, const char *name, const char *descr, const char *shape,
                    const void *v, size_t len)
{
    uint8_t bytes[512] = "\x93NUMPY\1";
    int n = snprintf((char *)bytes + 10, 300, "{'descr': '%s', 'fortran_order': False, 'shape': %s, }\n",
                     descr, shape);

    bytes[8] = (uint8_t)n;
    memcpy(bytes + 10 + n, v, len);
    put(f, name, bytes, 10 + (size_t)n + len);
}

static int load(struct fixture *f, struct err *err)
{
    const struct source_options o = {.spec = &f->spec, .dir = f->folder, .seed = 3};
    cleanup_source struct source *s = source_open(&o, err);

    if (!s)
        return -1;
    free(f->mem);
    f->mem = malloc(layout_bytes(source_layout(s)));
    f->set = layout_view(source_layout(s), f->mem);
    return source_load(s, &f->set, err);
}

static void npy_images_become_channels_last(void **state)
{
    struct fixture *f = *state;
    const uint8_t x[] = {0, 1, 2, 3, 10, 11, 12, 13}; /* (1, 2, 2, 2) */
    const int64_t y[] = {41};
    struct err err;

    put_npy(f, "x.npy", "|u1", "(1, 2, 2, 2)", x, sizeof(x));
    put_npy(f, "y.npy", "<i8", "(1,)", y, sizeof(y));
    f->spec.format = SOURCE_NPY;
    f->spec.train = "x.npy";
    f->spec.train_targets = "y.npy";
    assert_int_equal(load(f, &err), 0);
    const uint8_t want[] = {0, 10, 1, 11, 2, 12, 3, 13};
    assert_memory_equal(f->set.train.x, want, sizeof(want));
    const struct data_layout *l = &f->set.layout;
    assert_true(l->rows == 2 && l->cols == 2 && l->channels == 2 && !l->floats && !l->values);
    assert_int_equal(f->set.train.labels[0], 41);
    assert_int_equal(l->classes, 42);
    assert_int_equal(l->test_items, 0);
}

static void npy_vectors_with_values(void **state)
{
    struct fixture *f = *state;
    const double x[] = {1, 2, 3, 4, 5, 6};
    const float y[] = {7, 8, 9, 10};
    struct err err;

    put_npy(f, "x.npy", "<f8", "(2, 3)", x, sizeof(x));
    put_npy(f, "y.npy", "<f4", "(2, 2)", y, sizeof(y));
    f->spec = (struct data_spec){.format = SOURCE_NPY,
                                 .values = true,
                                 .train = "x.npy",
                                 .train_targets = "y.npy",
                                 .test = "x.npy",
                                 .test_targets = "y.npy"};
    assert_int_equal(load(f, &err), 0);
    assert_true(f->set.layout.values == 2 && f->set.layout.channels == 3 && f->set.layout.floats);
    assert_memory_equal(f->set.test.values, y, sizeof(y));
    assert_true(((float *)f->set.train.x)[5] == 6);
    assert_null(f->set.train.labels);
}

static void files_must_fit_each_other(void **state)
{
    struct fixture *f = *state;
    const float v[] = {1, 2, 3, 4, 5, 6};
    const int64_t y[] = {0, 1, 2};
    static const struct {
        const char *train, *train_targets, *test, *test_targets, *says;
    } cases[] = {
        {"x.npy", "y3.npy", NULL, NULL, "y3.npy: shape: 3 targets, expected 2 as "},
        {"x.npy", "x.npy", NULL, NULL, "x.npy: shape: 2 dimensions, expected (n) of labels"},
        {"y2.npy", "y2.npy", NULL, NULL, "y2.npy: shape: 1 dimension, expected"},
        {"x.npy", "y2.npy", "x4.npy", "y3.npy", "x4.npy: expected inputs of the type and shape"},
        {"x.npy", "none.npy", NULL, NULL, "none.npy"},
        {"x.npy", "f2.npy", NULL, NULL, "f2.npy: descr: '<f4', expected integers"},
    };

    put_npy(f, "x.npy", "<f4", "(2, 3)", v, sizeof(v));
    put_npy(f, "x4.npy", "<f4", "(3, 2)", v, sizeof(v));
    put_npy(f, "f2.npy", "<f4", "(2,)", v, 8);
    put_npy(f, "y3.npy", "<i8", "(3,)", y, sizeof(y));
    put_npy(f, "y2.npy", "<i8", "(2,)", y, 16);
    f->spec.format = SOURCE_NPY;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct err err = {0};
        f->spec.train = cases[i].train;
        f->spec.train_targets = cases[i].train_targets;
        f->spec.test = cases[i].test;
        f->spec.test_targets = cases[i].test_targets;
        assert_int_equal(load(f, &err), -1);
        if (!strstr(err.msg, cases[i].says))
            fail_msg("case %zu: \"%s\" lacks \"%s\"", i, err.msg, cases[i].says);
    }
}

static void csv_tables(void **state)
{
    struct fixture *f = *state;
    struct err err = {0};

    put(f, "a.csv", "5,1,2\n3,3,4\n", 12);
    put(f, "b.csv", "7,8,9\n", 6);
    put(f, "c.csv", "7,8\n", 4);
    f->spec.format = SOURCE_CSV;
    f->spec.train = "a.csv";
    f->spec.test = "b.csv";
    f->spec.target = 0;
    assert_int_equal(load(f, &err), 0);
    assert_true(f->set.train.labels[0] == 5 && f->set.train.labels[1] == 3 && f->set.test.labels[0] == 7);
    assert_true(((float *)f->set.train.x)[3] == 4 && ((float *)f->set.test.x)[0] == 8);
    assert_int_equal(f->set.layout.classes, 8);
    f->spec.target = -1;
    assert_int_equal(load(f, &err), 0);
    assert_true(f->set.train.labels[1] == 4 && ((float *)f->set.train.x)[2] == 3);
    f->spec.target = 3;
    assert_int_equal(load(f, &err), -1);
    assert_non_null(strstr(err.msg, "columns: 3, expected 1 of targets from column 3, and inputs"));
    f->spec.target = 0;
    f->spec.test = "c.csv";
    assert_int_equal(load(f, &err), -1);
    assert_non_null(strstr(err.msg, "c.csv: columns: 2, expected 3 as in "));
}

/* Labels beyond ten are no mistake where the files are the user's own. */
static void idx_files_of_any_name(void **state)
{
    struct fixture *f = *state;
    uint8_t images[16 + 6] = {0, 0, 8, 3, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3, 1, 2, 3, 4, 5, 6};
    uint8_t labels[8 + 1] = {0, 0, 8, 1, 0, 0, 0, 1, 77};
    struct err err = {0};

    put(f, "x.idx", images, sizeof(images));
    put(f, "y.idx", labels, sizeof(labels));
    f->spec.format = SOURCE_IDX;
    f->spec.train = "x.idx";
    f->spec.train_targets = "y.idx";
    assert_int_equal(load(f, &err), 0);
    assert_true(f->set.layout.rows == 2 && f->set.layout.cols == 3 && f->set.layout.classes == 78);
    assert_int_equal(f->set.train.labels[0], 77);
    assert_memory_equal(f->set.train.x, images + 16, 6);
}

static void synthetic_rows_are_drawn_as_pytorch_draws_them(void **state)
{
    struct fixture *f = *state;
    struct torch_rng g;
    float want[4];
    struct err err;

    f->spec = (struct data_spec){.format = SOURCE_SYNTHETIC,
                                 .values = true,
                                 .items = 5,
                                 .rows = 1,
                                 .cols = 1,
                                 .channels = 3,
                                 .synthetic = {SYNTHETIC_UNIFORM, 1}};
    assert_int_equal(load(f, &err), 0);
    torch_rng_seed(&g, 3);
    for (int i = 0; i < 5; i++) {
        torch_rng_uniform(&g, 0, 1, want, 3);
        torch_rng_uniform(&g, 0, 1, want + 3, 1);
        assert_memory_equal((float *)f->set.train.x + i * 3, want, 3 * sizeof(float));
        assert_true(f->set.train.values[i] == want[3]);
    }
    assert_int_equal(synthetic_draws(&f->spec.synthetic, &f->set.layout), 20);
}

/* The teacher's answer is the same however its samples lie: asked by hand, channels first. */
static void a_teacher_answers(void **state)
{
    struct fixture *f = *state;
    enum { ITEMS = 6, CHANNELS = 2, PIXELS = 4, INPUTS = CHANNELS * PIXELS, CLASSES = 3 };
    struct torch_rng g;
    float x[ITEMS][INPUTS];
    float w[CLASSES][INPUTS];
    struct err err;

    torch_rng_seed(&g, 3);
    for (int i = 0; i < ITEMS; i++)
        torch_rng_uniform(&g, 0, 1, x[i], INPUTS);
    for (int c = 0; c < CLASSES; c++)
        torch_rng_uniform(&g, -1, 1, w[c], INPUTS);
    for (int values = 0; values < 2; values++) {
        f->spec = (struct data_spec){.format = SOURCE_SYNTHETIC,
                                     .values = values,
                                     .items = ITEMS,
                                     .rows = 2,
                                     .cols = 2,
                                     .channels = CHANNELS,
                                     .synthetic = {SYNTHETIC_TEACHER, CLASSES}};
        assert_int_equal(load(f, &err), 0);
        assert_int_equal(synthetic_draws(&f->spec.synthetic, &f->set.layout),
                         ITEMS * INPUTS + CLASSES * INPUTS);
        for (int i = 0; i < ITEMS; i++) {
            double answer[CLASSES] = {0};
            int best = 0;
            for (int c = 0; c < CLASSES; c++) {
                for (int k = 0; k < INPUTS; k++)
                    answer[c] += (double)w[c][k] * ((double)x[i][k] - 0.5);
                best = answer[c] > answer[best] ? c : best;
                if (values)
                    assert_float_equal(f->set.train.values[i * CLASSES + c], answer[c], 1e-6);
            }
            if (!values)
                assert_int_equal(f->set.train.labels[i], best);
            for (int k = 0; k < INPUTS; k++)
                assert_true(((float *)f->set.train.x)[i * INPUTS + k % PIXELS * CHANNELS + k / PIXELS] ==
                            x[i][k]);
        }
    }
}

/* What lies behind the last field does not count. */
static void layouts_are_compared_by_their_fields(void **state)
{
    (void)state;
    struct data_layout a, b;

    memset(&a, 0xff, sizeof(a));
    memset(&b, 0, sizeof(b));
    a.train_items = a.test_items = 0;
    a.rows = a.cols = a.channels = a.floats = a.values = a.steps = a.classes = 0;
    assert_true(layout_same(&a, &b));
    a.classes = 1;
    assert_false(layout_same(&a, &b));
    a.classes = 0;
    a.test_items = 1;
    assert_false(layout_same(&a, &b));
}

/* The folder is none of the pattern's: [a] is not a. */
static void a_folder_of_tokens_is_no_pattern(void **state)
{
    struct fixture *f = *state;
    char folder[PATH_MAX + 8];
    struct err err;

    snprintf(folder, sizeof(folder), "%s/[a]", f->folder);
    assert_int_equal(mkdir(folder, 0700), 0);
    put(f, "[a]/1.txt", "abcde", 5);
    put(f, "[a]/2.txt", "abcde", 5);
    f->spec = (struct data_spec){.format = SOURCE_TOKENS, .rows = 4, .train = "?.txt"};
    const struct source_options o = {.spec = &f->spec, .dir = folder};
    cleanup_source struct source *s = source_open(&o, &err);
    if (!s)
        fail_msg("%s", err.msg);
    assert_int_equal(source_layout(s)->train_items, 2);
}

static void layouts_are_bounded(void **state)
{
    (void)state;
    const struct data_layout good = {.train_items = 3, .test_items = 1, .rows = 5, .cols = 7, .channels = 2};
    struct err err = {0};
    struct data_layout l = good;

    assert_int_equal(layout_check(&l, &err), 0);
    l.train_items = 0;
    assert_int_equal(layout_check(&l, &err), -1);
    assert_non_null(strstr(err.msg, "training samples: 0, expected 1.."));
    l = good;
    l.cols = 65537;
    assert_int_equal(layout_check(&l, &err), -1);
    l = good;
    l.values = -1;
    assert_int_equal(layout_check(&l, &err), -1);
    l = (struct data_layout){
        .train_items = INT32_MAX, .rows = 65536, .cols = 65536, .channels = 1 << 24, .floats = 1};
    assert_int_equal(layout_check(&l, &err), -1);
    assert_non_null(strstr(err.msg, "expected at most 1099511627776"));
    /* No array reaches into the next. */
    uint8_t mem[1024];
    struct dataset d = layout_view(&good, mem);
    assert_ptr_equal(d.train.x, mem);
    assert_ptr_equal(d.train.labels, mem + 256);
    assert_ptr_equal(d.test.x, mem + 320);
    assert_ptr_equal(d.test.labels, mem + 448);
    assert_int_equal(layout_bytes(&good), 512);
}

/* The key of the spec's files at a time, or "" where there is none. */
static void key_at(struct fixture *f, int64_t now_ms, char out[static 4096])
{
    const struct source_options o = {.spec = &f->spec, .dir = f->folder, .seed = 3};
    cleanup_buf struct buf b = BUF_INIT(4095);
    struct err err;
    cleanup_source struct source *s = source_open(&o, &err);

    assert_non_null(s);
    snprintf(out, 4096, "%s", source_key(s, now_ms, &b) ? buf_str(&b) : "");
}

/* The same long after the files were made. */
static void key(struct fixture *f, char out[static 4096])
{
    key_at(f, (time(NULL) + 1000) * 1000, out);
}

static void a_key_changes_with_the_files_and_how_they_are_read(void **state)
{
    struct fixture *f = *state;
    char before[4096], after[4096], path[PATH_MAX + 32], other[PATH_MAX + 32];
    struct stat st;

    put(f, "a.csv", "1,2,3\n", 6);
    f->spec.format = SOURCE_CSV;
    f->spec.train = f->spec.test = "a.csv";
    key(f, before);
    assert_true(before[0]);
    key(f, after);
    assert_string_equal(after, before);

    f->spec.target = 0;
    key(f, after);
    assert_string_not_equal(after, before);
    f->spec.target = -1;

    /* Another file of the same size and time of its last writing, in its place. */
    snprintf(path, sizeof(path), "%s/a.csv", f->folder);
    snprintf(other, sizeof(other), "%s/b.csv", f->folder);
    put(f, "b.csv", "1,2,4\n", 6);
    assert_int_equal(stat(path, &st), 0);
    const struct timespec times[] = {st.st_atim, st.st_mtim};
    assert_int_equal(utimensat(AT_FDCWD, other, times, 0), 0);
    assert_int_equal(rename(other, path), 0);
    key(f, after);
    assert_string_not_equal(after, before);

    /* The same file, written in place, and its time set back: once the clock of the file system has gone on. */
    key(f, before);
    assert_int_equal(stat(path, &st), 0);
    for (struct stat now = st;
         now.st_ctim.tv_sec == st.st_ctim.tv_sec && now.st_ctim.tv_nsec == st.st_ctim.tv_nsec;) {
        put(f, "a.csv", "1,2,5\n", 6);
        assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
        assert_int_equal(stat(path, &now), 0);
    }
    key(f, after);
    assert_string_not_equal(after, before);
}

/* Once the clock of the file system has gone on, what is written has other times. */
static void files_that_just_changed_have_no_key(void **state)
{
    struct fixture *f = *state;
    char text[4096], path[PATH_MAX + 32];
    struct stat st;

    put(f, "a.csv", "1,2,3\n", 6);
    f->spec.format = SOURCE_CSV;
    f->spec.train = "a.csv";
    snprintf(path, sizeof(path), "%s/a.csv", f->folder);
    const struct timespec old[] = {{.tv_sec = 1}, {.tv_sec = 1}};
    assert_int_equal(utimensat(AT_FDCWD, path, old, 0), 0); /* the time of its change is that of now */
    assert_int_equal(stat(path, &st), 0);
    for (int age_s = -1000; age_s <= SOURCE_SETTLED_S; age_s++) {
        key_at(f, (st.st_ctim.tv_sec + age_s) * 1000 + 999, text);
        assert_string_equal(text, "");
    }
    key_at(f, (st.st_ctim.tv_sec + SOURCE_SETTLED_S + 1) * 1000, text);
    assert_true(text[0]);

    const struct timespec later[] = {st.st_ctim, {.tv_sec = st.st_ctim.tv_sec + 1000}};
    assert_int_equal(utimensat(AT_FDCWD, path, later, 0), 0);
    key_at(f, (st.st_ctim.tv_sec + 500) * 1000, text);
    assert_string_equal(text, "");
}

static void data_without_files_to_decode_have_no_key(void **state)
{
    struct fixture *f = *state;
    char text[4096];

    f->spec.format = SOURCE_SYNTHETIC;
    f->spec.items = 4;
    f->spec.rows = f->spec.cols = f->spec.channels = 1;
    key(f, text);
    assert_string_equal(text, "");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(npy_images_become_channels_last),
        TEST(npy_vectors_with_values),
        TEST(files_must_fit_each_other),
        TEST(csv_tables),
        TEST(idx_files_of_any_name),
        TEST(synthetic_rows_are_drawn_as_pytorch_draws_them),
        TEST(a_teacher_answers),
        TEST(layouts_are_compared_by_their_fields),
        TEST(a_folder_of_tokens_is_no_pattern),
        TEST(layouts_are_bounded),
        TEST(a_key_changes_with_the_files_and_how_they_are_read),
        TEST(files_that_just_changed_have_no_key),
        TEST(data_without_files_to_decode_have_no_key),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
