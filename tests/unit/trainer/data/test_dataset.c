/* test_dataset.c - where files are found, and what they must agree on. */
#include "common/fsutil.h"
#include "files.h"
#include "test.h"
#include "trainer/data/idx.h"
#include "trainer/data/source.h"

enum { TRAIN = 5, TEST = 3, SIDE = 4, PIXELS = SIDE * SIDE, FILE_MAX = 16 + TRAIN * PIXELS };

static const char *const names[DATASET_PARTS] = {"train-images-idx3-ubyte", "train-labels-idx1-ubyte",
                                                 "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"};

/* One of the four files: pixels count up from `mark`, labels from 0. Returns its length. */
static size_t make_file(int part, int32_t items, int32_t side, uint8_t mark, uint8_t out[static FILE_MAX])
{
    bool images = part % 2 == 0;
    size_t header = images ? 16 : 8;
    size_t payload = (size_t)items * (images ? (size_t)side * (size_t)side : 1);

    files_big_endian(out, images ? IDX_IMAGES : IDX_LABELS);
    files_big_endian(out + 4, (uint32_t)items);
    if (images) {
        files_big_endian(out + 8, (uint32_t)side);
        files_big_endian(out + 12, (uint32_t)side);
    }
    for (size_t i = 0; i < payload; i++)
        out[header + i] = (uint8_t)(images ? mark + i : i % DATASET_CLASSES);
    return header + payload;
}

static void put_file(const char *root, const char *sub, int part, bool gz, uint8_t mark)
{
    char folder[PATH_MAX + 32];
    char path[PATH_MAX + 96];
    uint8_t bytes[FILE_MAX];
    uint8_t packed[FILE_MAX + 100];
    struct err err = {0};
    size_t len = make_file(part, part < 2 ? TRAIN : TEST, SIDE, mark, bytes);

    snprintf(folder, sizeof(folder), "%s/%s", root, sub);
    assert_int_equal(fs_mkdirs(folder, &err), 0);
    snprintf(path, sizeof(path), "%s/%s%s", folder, names[part], gz ? ".gz" : "");
    if (gz) { /* in two members, as `cat a.gz b.gz` makes them, and an empty one */
        size_t n = files_gzip(bytes, len / 2, packed, sizeof(packed));
        n += files_gzip(bytes + len / 2, len - len / 2, packed + n, sizeof(packed) - n);
        n += files_gzip("", 0, packed + n, sizeof(packed) - n);
        files_write(path, packed, n);
    } else
        files_write(path, bytes, len);
}

static void put_all(const char *root, const char *sub, bool gz, uint8_t mark)
{
    for (int part = 0; part < DATASET_PARTS; part++)
        put_file(root, sub, part, gz, mark);
}

static void expect_part(const struct data_part *p, int64_t items, int mark)
{
    assert_int_equal(p->items, items);
    for (int64_t i = 0; i < items * PIXELS; i++)
        assert_int_equal(((const uint8_t *)p->x)[i], (uint8_t)(mark + i));
    for (int64_t i = 0; i < items; i++)
        assert_int_equal(p->labels[i], i);
}

/* The first pixel shows which folder's files were taken. */
static int load_mark(const char *folder, enum dataset_name name, struct err *err)
{
    const struct data_spec spec = {.format = &format_idx, .dataset = (int)name};
    const struct source_options o = {.spec = &spec, .dir = folder};
    cleanup_source struct source *s = source_open(&o, err);

    if (!s)
        return -1;
    cleanup_free uint8_t *mem = malloc(layout_bytes(&s->layout));
    struct dataset d = layout_view(&s->layout, mem);
    if (source_load(s, &d, err) < 0)
        return -1;
    assert_true(d.layout.rows == SIDE && d.layout.cols == SIDE);
    expect_part(&d.train, TRAIN, mem[0]);
    expect_part(&d.test, TEST, mem[0]);
    return mem[0];
}

static int setup(void **state)
{
    return files_setup(state, "");
}

static void test_places(void **state)
{
    static const struct {
        const char *sub;
        enum dataset_name name;
        bool others; /* found under the other name too */
    } cases[] = {
        {"MNIST/raw", DATASET_MNIST, false}, {"FashionMNIST/raw", DATASET_FASHION_MNIST, false},
        {"mnist", DATASET_MNIST, false},     {"fashion-mnist", DATASET_FASHION_MNIST, false},
        {"raw", DATASET_MNIST, true},        {".", DATASET_FASHION_MNIST, true},
    };

    (void)state;
    for (size_t i = 0; i < 2 * ARRAY_LEN(cases); i++) {
        struct files_fixture f;
        struct err err = {0};
        char near[PATH_MAX + 96];
        enum dataset_name other = cases[i / 2].name == DATASET_MNIST ? DATASET_FASHION_MNIST : DATASET_MNIST;
        files_folder(f.folder);
        put_all(f.folder, cases[i / 2].sub, i % 2, 77);
        snprintf(near, sizeof(near), "%s/%s/train-images.idx3-ubyte", f.folder, cases[i / 2].sub);
        files_write(near, "x", 1); /* no matter beside a whole set */
        assert_int_equal(load_mark(f.folder, cases[i / 2].name, &err), 77);
        assert_int_equal(load_mark(f.folder, DATASET_ANY, &err), 77);
        assert_int_equal(load_mark(f.folder, other, &err), cases[i / 2].others ? 77 : -1);
        files_remove(f.folder);
    }
}

static void test_order_of_places(void **state)
{
    struct files_fixture *f = *state;
    struct err err = {0};

    put_all(f->folder, ".", true, 1);
    assert_int_equal(load_mark(f->folder, DATASET_MNIST, &err), 1);
    put_all(f->folder, ".", false, 2); /* plain before .gz */
    assert_int_equal(load_mark(f->folder, DATASET_MNIST, &err), 2);
    put_all(f->folder, "raw", false, 3);
    assert_int_equal(load_mark(f->folder, DATASET_MNIST, &err), 3);
    put_all(f->folder, "MNIST/raw", false, 4);
    assert_int_equal(load_mark(f->folder, DATASET_MNIST, &err), 4);
    assert_int_equal(load_mark(f->folder, DATASET_FASHION_MNIST, &err), 3);
    assert_int_equal(load_mark(f->folder, DATASET_ANY, &err), 4);
    put_all(f->folder, "FashionMNIST/raw", false, 5);
    assert_int_equal(load_mark(f->folder, DATASET_FASHION_MNIST, &err), 5);
    assert_int_equal(load_mark(f->folder, DATASET_ANY, &err), -1);
    assert_int_equal(err.kind, ERR_INVALID);
    assert_non_null(strstr(err.msg, "--dataset"));
}

static void test_nothing_there(void **state)
{
    struct files_fixture *f = *state;
    struct err err = {0};

    assert_int_equal(load_mark("/nonexistent/data", DATASET_FASHION_MNIST, &err), -1);
    assert_int_equal(err.kind, ERR_NOT_FOUND);
    assert_string_equal(err.msg,
                        "/nonexistent/data: no Fashion-MNIST: expected train-images-idx3-ubyte[.gz] in its "
                        "folders FashionMNIST/raw, fashion-mnist, raw, and itself");
    assert_int_equal(load_mark(f->folder, DATASET_ANY, &err), -1);
    assert_non_null(strstr(err.msg, "MNIST/raw, FashionMNIST/raw, mnist, fashion-mnist, raw, and itself"));
}

static void test_one_missing(void **state)
{
    struct files_fixture *f = *state;

    for (int missing = 0; missing < DATASET_PARTS; missing++) {
        struct err err = {0};
        char sub[8];
        snprintf(sub, sizeof(sub), "%d", missing);
        struct files_fixture g;
        snprintf(g.folder, sizeof(g.folder), "%.4000s/%s", f->folder, sub);
        for (int part = 0; part < DATASET_PARTS; part++) {
            if (part != missing)
                put_file(g.folder, "raw", part, part % 2, 1);
        }
        assert_int_equal(load_mark(g.folder, DATASET_MNIST, &err), -1);
        assert_int_equal(err.kind, ERR_NOT_FOUND);
        assert_non_null(strstr(err.msg, names[missing]));
        assert_non_null(strstr(err.msg, "3 of 4 files found"));
    }
}

/* Names that people's files have. Beside them lies what a download leaves behind, which is no file of the user's. */
static void test_near_misses(void **state)
{
    static const char *const near[] = {
        "train-images.idx3-ubyte",        "t10k-labels.idx1-ubyte",         "train_images_idx3_ubyte.gz",
        "Train-Images-IDX3-Ubyte",        "train-images-idx3-ubyte.bin",    "test-images-idx3-ubyte.gz",
        "train-images-idx3-ubyte (1).gz", "emnist-train-labels-idx1-ubyte",
    };
    static const char *const other[] = {"train-images-idx3-ubyte.gz.part",
                                        "train-images-idx3-ubyte.gz.4711.tmp", "MNIST.txt", ".fetch.lock",
                                        "train.csv"};
    static const char *const folders[] = {"MNIST/raw", "mnist", "raw", "."};
    char path[PATH_MAX + 96];

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(near) * ARRAY_LEN(folders); i++) {
        const char *folder = folders[i / ARRAY_LEN(near)];
        const char *name = near[i % ARRAY_LEN(near)];
        struct files_fixture f;
        struct err err = {0};
        files_folder(f.folder);
        put_file(f.folder, folder, DATASET_TRAIN_IMAGES, false, 1);
        snprintf(path, sizeof(path), "%s/%s/%s", f.folder, folder, names[DATASET_TRAIN_IMAGES]);
        assert_int_equal(unlink(path), 0);
        for (size_t k = 0; k < ARRAY_LEN(other); k++) {
            snprintf(path, sizeof(path), "%s/%s/%s", f.folder, folder, other[k]);
            files_write(path, "x", 1);
        }
        assert_int_equal(load_mark(f.folder, DATASET_MNIST, &err), -1);
        assert_int_equal(err.kind, ERR_NOT_FOUND);
        snprintf(path, sizeof(path), "%s/%s/%s", f.folder, folder, name);
        files_write(path, "x", 1);
        for (int part = 1; part <= 2; part++) { /* none of the four, then one */
            assert_int_equal(load_mark(f.folder, DATASET_MNIST, &err), -1);
            if (err.kind != ERR_INVALID || !strstr(err.msg, name) || strlen(err.msg) == sizeof(err.msg) - 1 ||
                !strstr(err.msg, ": expected a name as {train,t10k}-{images-idx3,labels-idx1}-ubyte[.gz]"))
                fail_msg("%s in %s: kind %d: %s", name, folder, err.kind, err.msg);
            put_file(f.folder, folder, part, true, 1);
        }
        files_remove(f.folder);
    }
}

static void replace(const char *root, int part, int32_t items, int32_t side, int bad_label)
{
    char path[PATH_MAX + 96];
    uint8_t bytes[FILE_MAX];
    size_t len = make_file(part, items, side, 1, bytes);

    if (bad_label)
        bytes[len - 1] = (uint8_t)bad_label;
    snprintf(path, sizeof(path), "%s/%s", root, names[part]);
    files_write(path, bytes, len);
}

static void test_disagreements(void **state)
{
    static const struct {
        int part;
        int32_t items, side;
        int bad_label;
        const char *names;
    } cases[] = {
        {DATASET_TRAIN_LABELS, TRAIN - 1, 1, 0, "items: 4 labels, expected 5"},
        {DATASET_TEST_LABELS, TEST + 1, 1, 0, "items: 4 labels, expected 3"},
        {DATASET_TEST_IMAGES, TEST, SIDE - 1, 0, "3x3 pixels, expected 4x4"},
        {DATASET_TRAIN_LABELS, TRAIN, 1, 10, "label of item 4: 10, expected 0..9"},
        {DATASET_TEST_LABELS, TEST, 1, 255, "label of item 2: 255, expected 0..9"},
    };
    struct files_fixture *f = *state;

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct err err = {0};
        put_all(f->folder, ".", false, 1);
        replace(f->folder, cases[i].part, cases[i].items, cases[i].side, cases[i].bad_label);
        assert_int_equal(load_mark(f->folder, DATASET_ANY, &err), -1);
        assert_int_equal(err.kind, ERR_INVALID);
        assert_non_null(strstr(err.msg, cases[i].names));
        assert_non_null(strstr(err.msg, names[cases[i].part]));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_places),
        cmocka_unit_test_setup_teardown(test_order_of_places, setup, files_teardown),
        cmocka_unit_test_setup_teardown(test_nothing_there, setup, files_teardown),
        cmocka_unit_test(test_near_misses),
        cmocka_unit_test_setup_teardown(test_one_missing, setup, files_teardown),
        cmocka_unit_test_setup_teardown(test_disagreements, setup, files_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
