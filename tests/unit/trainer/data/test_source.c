/* test_source.c - one way in for every format: what lands in memory, and files that do not fit each other. */
#include "files.h"
#include "test.h"

#include "trainer/data/source.h"
#include "trainer/rng/torch_rng.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>

enum { TEACHER, UNIFORM };   /* data.targets */
enum { BEFORE_WEIGHTS = 1 }; /* data.generator */

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
    f->spec = (struct data_spec){.format = &format_idx, .stats = 1, .std = {1}};
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

static int load(struct fixture *f, struct err *err)
{
    const struct source_options o = {.spec = &f->spec, .dir = f->folder, .seed = 3};
    cleanup_source struct source *s = source_open(&o, err);

    if (!s)
        return -1;
    free(f->mem);
    f->mem = malloc(layout_bytes(&s->layout));
    f->set = layout_view(&s->layout, f->mem);
    return source_load(s, &f->set, err);
}

static const uint8_t IMAGE[16 + 6] = {0, 0, 8, 3, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3, 1, 2, 3, 4, 5, 6};

/* One image of 2 x 3 pixels and its label, of the user's own names. */
static void put_pair(struct fixture *f)
{
    const uint8_t label[8 + 1] = {0, 0, 8, 1, 0, 0, 0, 1, 77};

    put(f, "x.idx", IMAGE, sizeof(IMAGE));
    put(f, "y.idx", label, sizeof(label));
    f->spec.format = &format_idx;
    f->spec.train = "x.idx";
    f->spec.train_targets = "y.idx";
}

/* Labels beyond ten are no mistake where the files are the user's own. */
static void idx_files_of_any_name(void **state)
{
    struct fixture *f = *state;
    struct err err = {0};

    put_pair(f);
    assert_int_equal(load(f, &err), 0);
    assert_true(f->set.layout.rows == 2 && f->set.layout.cols == 3 && f->set.layout.classes == 78);
    assert_int_equal(f->set.train.labels[0], 77);
    assert_memory_equal(f->set.train.x, IMAGE + 16, 6);
}

static void synthetic_rows_are_drawn_as_pytorch_draws_them(void **state)
{
    struct fixture *f = *state;
    struct torch_rng g;
    float want[4];
    struct err err;

    f->spec = (struct data_spec){.format = &format_synthetic,
                                 .values = true,
                                 .rows = 1,
                                 .cols = 1,
                                 .channels = 3,
                                 .option = {5, 1, UNIFORM, BEFORE_WEIGHTS}};
    assert_int_equal(load(f, &err), 0);
    torch_rng_seed(&g, 3);
    for (int i = 0; i < 5; i++) {
        torch_rng_uniform(&g, 0, 1, want, 3);
        torch_rng_uniform(&g, 0, 1, want + 3, 1);
        assert_memory_equal((float *)f->set.train.x + i * 3, want, 3 * sizeof(float));
        assert_true(f->set.train.values[i] == want[3]);
    }
    assert_int_equal(format_synthetic.draws(&f->spec, &f->set.layout), 20);
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
        f->spec = (struct data_spec){.format = &format_synthetic,
                                     .values = values,
                                     .rows = 2,
                                     .cols = 2,
                                     .channels = CHANNELS,
                                     .option = {ITEMS, CLASSES, TEACHER, BEFORE_WEIGHTS}};
        assert_int_equal(load(f, &err), 0);
        assert_int_equal(format_synthetic.draws(&f->spec, &f->set.layout), ITEMS * INPUTS + CLASSES * INPUTS);
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
    f->spec = (struct data_spec){.format = &format_tokens, .rows = 4, .train = "?.txt"};
    const struct source_options o = {.spec = &f->spec, .dir = folder};
    cleanup_source struct source *s = source_open(&o, &err);
    if (!s)
        fail_msg("%s", err.msg);
    assert_int_equal(s->layout.train_items, 2);
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

static void a_key_changes_with_the_files(void **state)
{
    struct fixture *f = *state;
    uint8_t other_image[sizeof(IMAGE)];
    char before[4096], after[4096], path[PATH_MAX + 32], other[PATH_MAX + 32];
    struct stat st;

    memcpy(other_image, IMAGE, sizeof(IMAGE));
    put_pair(f);
    f->spec.test = "x.idx";
    f->spec.test_targets = "y.idx";
    key(f, before);
    assert_true(before[0]);
    key(f, after);
    assert_string_equal(after, before);

    f->spec.test = f->spec.test_targets = NULL;
    key(f, after);
    assert_string_not_equal(after, before);
    f->spec.test = "x.idx";
    f->spec.test_targets = "y.idx";

    /* Another file of the same size and time of its last writing, in its place. */
    snprintf(path, sizeof(path), "%s/x.idx", f->folder);
    snprintf(other, sizeof(other), "%s/z.idx", f->folder);
    other_image[16] = 9;
    put(f, "z.idx", other_image, sizeof(other_image));
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
        put(f, "x.idx", IMAGE, sizeof(IMAGE));
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

    put_pair(f);
    const struct timespec old[] = {{.tv_sec = 1}, {.tv_sec = 1}};
    for (int i = 1; i >= 0; i--) { /* the time of its change is that of now */
        snprintf(path, sizeof(path), "%s/%c.idx", f->folder, 'x' + i);
        assert_int_equal(utimensat(AT_FDCWD, path, old, 0), 0);
    }
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

    f->spec.format = &format_synthetic;
    f->spec.option[0] = 4;
    f->spec.rows = f->spec.cols = f->spec.channels = 1;
    key(f, text);
    assert_string_equal(text, "");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(idx_files_of_any_name),
        TEST(synthetic_rows_are_drawn_as_pytorch_draws_them),
        TEST(a_teacher_answers),
        TEST(layouts_are_compared_by_their_fields),
        TEST(a_folder_of_tokens_is_no_pattern),
        TEST(layouts_are_bounded),
        TEST(a_key_changes_with_the_files),
        TEST(files_that_just_changed_have_no_key),
        TEST(data_without_files_to_decode_have_no_key),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
