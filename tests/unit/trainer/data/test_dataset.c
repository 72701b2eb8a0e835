/* test_dataset.c - where files are found, what they must agree on, and a view from another mapping. */
#include "common/fsutil.h"
#include "files.h"
#include "test.h"
#include "trainer/data/dataset.h"

enum { TRAIN = 5, TEST = 3, SIDE = 4, PIXELS = SIDE * SIDE, FILE_MAX = 16 + TRAIN * PIXELS };

static const char *const names[DATASET_PARTS] = {"train-images-idx3-ubyte", "train-labels-idx1-ubyte",
                                                 "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"};

struct fixture {
    char folder[PATH_MAX];
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));

    if (!f)
        return -1;
    files_folder(f->folder);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    files_remove(f->folder);
    free(f);
    return 0;
}

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

static void put_file(const struct fixture *f, const char *sub, int part, bool gz, uint8_t mark)
{
    char folder[PATH_MAX + 32];
    char path[PATH_MAX + 96];
    uint8_t bytes[FILE_MAX];
    uint8_t packed[FILE_MAX + 100];
    struct err err = {0};
    size_t len = make_file(part, part < 2 ? TRAIN : TEST, SIDE, mark, bytes);

    snprintf(folder, sizeof(folder), "%s/%s", f->folder, sub);
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

static void put_all(const struct fixture *f, const char *sub, bool gz, uint8_t mark)
{
    for (int part = 0; part < DATASET_PARTS; part++)
        put_file(f, sub, part, gz, mark);
}

/* Memory for the files and its view. */
static uint8_t *memory(const struct dataset_files *files, struct dataset *d)
{
    struct data_layout l = dataset_layout(files);
    struct err err;

    assert_int_equal(layout_check(&l, &err), 0);
    uint8_t *mem = malloc(layout_bytes(&l));
    assert_non_null(mem);
    *d = layout_view(&l, mem);
    return mem;
}

/* The first pixel tells which folder's files were taken. */
static int load_mark(const struct fixture *f, enum dataset_name name, struct err *err)
{
    struct dataset_files files;
    struct dataset d;

    if (dataset_find(f->folder, name, &files, err) < 0)
        return -1;
    cleanup_free uint8_t *mem = memory(&files, &d);
    if (dataset_load(&files, &d, DATASET_CLASSES, err) < 0)
        return -1;
    assert_ptr_equal(d.train.x, mem);
    return mem[0];
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
        struct fixture f;
        struct err err = {0};
        enum dataset_name other = cases[i / 2].name == DATASET_MNIST ? DATASET_FASHION_MNIST : DATASET_MNIST;
        files_folder(f.folder);
        put_all(&f, cases[i / 2].sub, i % 2, 77);
        assert_int_equal(load_mark(&f, cases[i / 2].name, &err), 77);
        assert_int_equal(load_mark(&f, DATASET_ANY, &err), 77);
        assert_int_equal(load_mark(&f, other, &err), cases[i / 2].others ? 77 : -1);
        files_remove(f.folder);
    }
}

static void test_order_of_places(void **state)
{
    struct fixture *f = *state;
    struct err err = {0};

    put_all(f, ".", true, 1);
    assert_int_equal(load_mark(f, DATASET_MNIST, &err), 1);
    put_all(f, ".", false, 2); /* plain before .gz */
    assert_int_equal(load_mark(f, DATASET_MNIST, &err), 2);
    put_all(f, "raw", false, 3);
    assert_int_equal(load_mark(f, DATASET_MNIST, &err), 3);
    put_all(f, "MNIST/raw", false, 4);
    assert_int_equal(load_mark(f, DATASET_MNIST, &err), 4);
    assert_int_equal(load_mark(f, DATASET_FASHION_MNIST, &err), 3);
    assert_int_equal(load_mark(f, DATASET_ANY, &err), 4);
    put_all(f, "FashionMNIST/raw", false, 5);
    assert_int_equal(load_mark(f, DATASET_FASHION_MNIST, &err), 5);
    assert_int_equal(load_mark(f, DATASET_ANY, &err), -1);
    assert_int_equal(err.kind, ERR_INVALID);
    assert_non_null(strstr(err.msg, "--dataset"));
}

static void test_content_and_view(void **state)
{
    struct fixture *f = *state;
    struct dataset_files files;
    struct dataset d;
    struct err err = {0};

    put_all(f, ".", true, 10);
    assert_int_equal(dataset_find(f->folder, DATASET_ANY, &files, &err), 0);
    cleanup_free uint8_t *mem = memory(&files, &d);
    size_t bytes = layout_bytes(&d.layout);
    cleanup_free uint8_t *moved = malloc(bytes);
    assert_non_null(moved);
    assert_int_equal(dataset_load(&files, &d, DATASET_CLASSES, &err), 0);
    assert_int_equal(d.train.items, TRAIN);
    assert_int_equal(d.test.items, TEST);
    assert_int_equal(d.layout.rows, SIDE);
    assert_int_equal(d.layout.cols, SIDE);
    memcpy(moved, mem, bytes);
    memset(mem, 0xff, bytes);
    d = layout_view(&d.layout, moved);
    for (size_t i = 0; i < TRAIN * PIXELS; i++)
        assert_int_equal(((const uint8_t *)d.train.x)[i], (uint8_t)(10 + i));
    for (size_t i = 0; i < TEST * PIXELS; i++)
        assert_int_equal(((const uint8_t *)d.test.x)[i], (uint8_t)(10 + i));
    for (size_t i = 0; i < TRAIN; i++)
        assert_int_equal(d.train.labels[i], i);
    for (size_t i = 0; i < TEST; i++)
        assert_int_equal(d.test.labels[i], i);
}

static void test_nothing_there(void **state)
{
    struct fixture *f = *state;
    struct dataset_files files;
    struct err err = {0};

    assert_int_equal(dataset_find("/nonexistent/data", DATASET_FASHION_MNIST, &files, &err), -1);
    assert_int_equal(err.kind, ERR_NOT_FOUND);
    assert_string_equal(err.msg,
                        "/nonexistent/data: no Fashion-MNIST: expected train-images-idx3-ubyte[.gz] in its "
                        "folders FashionMNIST/raw, fashion-mnist, raw, and itself");
    assert_int_equal(dataset_find(f->folder, DATASET_ANY, &files, &err), -1);
    assert_non_null(strstr(err.msg, "MNIST/raw, FashionMNIST/raw, mnist, fashion-mnist, raw, and itself"));
}

static void test_one_missing(void **state)
{
    struct fixture *f = *state;

    for (int missing = 0; missing < DATASET_PARTS; missing++) {
        struct err err = {0};
        char sub[8];
        snprintf(sub, sizeof(sub), "%d", missing);
        struct fixture g;
        snprintf(g.folder, sizeof(g.folder), "%.4000s/%s", f->folder, sub);
        for (int part = 0; part < DATASET_PARTS; part++) {
            if (part != missing)
                put_file(&g, "raw", part, part % 2, 1);
        }
        assert_int_equal(load_mark(&g, DATASET_MNIST, &err), -1);
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
    static const char *const other[] = {"train-images-idx3-ubyte.gz.part", "MNIST.txt", ".fetch.lock",
                                        "train.csv"};
    static const char *const folders[] = {"MNIST/raw", "mnist", "raw", "."};
    char path[PATH_MAX + 96];

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(near) * ARRAY_LEN(folders); i++) {
        const char *folder = folders[i / ARRAY_LEN(near)];
        const char *name = near[i % ARRAY_LEN(near)];
        struct fixture f;
        struct err err = {0};
        files_folder(f.folder);
        put_file(&f, folder, DATASET_TRAIN_IMAGES, false, 1);
        snprintf(path, sizeof(path), "%s/%s/%s", f.folder, folder, names[DATASET_TRAIN_IMAGES]);
        assert_int_equal(unlink(path), 0);
        for (size_t k = 0; k < ARRAY_LEN(other); k++) {
            snprintf(path, sizeof(path), "%s/%s/%s", f.folder, folder, other[k]);
            files_write(path, "x", 1);
        }
        assert_int_equal(load_mark(&f, DATASET_MNIST, &err), -1);
        assert_int_equal(err.kind, ERR_NOT_FOUND);
        snprintf(path, sizeof(path), "%s/%s/%s", f.folder, folder, name);
        files_write(path, "x", 1);
        for (int part = 1; part <= 2; part++) { /* none of the four, then one */
            assert_int_equal(load_mark(&f, DATASET_MNIST, &err), -1);
            if (err.kind != ERR_INVALID || !strstr(err.msg, name) || strlen(err.msg) == sizeof(err.msg) - 1 ||
                !strstr(err.msg, ": expected a name as {train,t10k}-{images-idx3,labels-idx1}-ubyte[.gz]"))
                fail_msg("%s in %s: kind %d: %s", name, folder, err.kind, err.msg);
            put_file(&f, folder, part, true, 1);
        }
        files_remove(f.folder);
    }
}

/* A whole data set is used, whatever else lies around. */
static void test_near_misses_beside_a_whole_set(void **state)
{
    struct fixture *f = *state;
    struct err err = {0};
    char path[PATH_MAX + 96];

    put_all(f, "raw", false, 78);
    snprintf(path, sizeof(path), "%s/raw/train-images.idx3-ubyte", f->folder);
    files_write(path, "x", 1);
    snprintf(path, sizeof(path), "%s/train-images.idx3-ubyte", f->folder);
    files_write(path, "x", 1);
    assert_int_equal(load_mark(f, DATASET_MNIST, &err), 78);
}

static void replace(const struct fixture *f, int part, int32_t items, int32_t side, int bad_label)
{
    char path[PATH_MAX + 96];
    uint8_t bytes[FILE_MAX];
    size_t len = make_file(part, items, side, 1, bytes);

    if (bad_label)
        bytes[len - 1] = (uint8_t)bad_label;
    snprintf(path, sizeof(path), "%s/%s", f->folder, names[part]);
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
    struct fixture *f = *state;

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct err err = {0};
        put_all(f, ".", false, 1);
        replace(f, cases[i].part, cases[i].items, cases[i].side, cases[i].bad_label);
        assert_int_equal(load_mark(f, DATASET_ANY, &err), -1);
        assert_int_equal(err.kind, ERR_INVALID);
        assert_non_null(strstr(err.msg, cases[i].names));
        assert_non_null(strstr(err.msg, names[cases[i].part]));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_places),
        cmocka_unit_test_setup_teardown(test_order_of_places, setup, teardown),
        cmocka_unit_test_setup_teardown(test_content_and_view, setup, teardown),
        cmocka_unit_test_setup_teardown(test_nothing_there, setup, teardown),
        cmocka_unit_test(test_near_misses),
        cmocka_unit_test_setup_teardown(test_near_misses_beside_a_whole_set, setup, teardown),
        cmocka_unit_test_setup_teardown(test_one_missing, setup, teardown),
        cmocka_unit_test_setup_teardown(test_disagreements, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
