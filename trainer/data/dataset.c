/* dataset.c - where the files lie, what they must agree on, and their layout in one block of memory. */
#include "trainer/data/dataset.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { ALIGN = 64 };

static const struct part {
    const char *file;
    enum idx_kind kind;
} parts[DATASET_PARTS] = {
    [DATASET_TRAIN_IMAGES] = {"train-images-idx3-ubyte", IDX_IMAGES},
    [DATASET_TRAIN_LABELS] = {"train-labels-idx1-ubyte", IDX_LABELS},
    [DATASET_TEST_IMAGES] = {"t10k-images-idx3-ubyte", IDX_IMAGES},
    [DATASET_TEST_LABELS] = {"t10k-labels-idx1-ubyte", IDX_LABELS},
};

/* In the order in which they are tried. */
static const struct place {
    enum dataset_name name;
    const char *folder;
} places[] = {
    {DATASET_MNIST, "/MNIST/raw"}, {DATASET_FASHION_MNIST, "/FashionMNIST/raw"},
    {DATASET_MNIST, "/mnist"},     {DATASET_FASHION_MNIST, "/fashion-mnist"},
    {DATASET_ANY, "/raw"},         {DATASET_ANY, ""},
};

static const struct title {
    const char *option;
    const char *text;
} titles[] = {
    [DATASET_ANY] = {"", "MNIST or Fashion-MNIST"},
    [DATASET_MNIST] = {"mnist", "MNIST"},
    [DATASET_FASHION_MNIST] = {"fashion-mnist", "Fashion-MNIST"},
};

bool dataset_parse(const char *text, enum dataset_name *ret)
{
    for (int i = DATASET_MNIST; i <= DATASET_FASHION_MNIST; i++) {
        if (strcmp(text, titles[i].option) != 0)
            continue;
        *ret = (enum dataset_name)i;
        return true;
    }
    return false;
}

/* The plain file, else the .gz one; false when neither can be seen. Out of range when the path is too long. */
static bool locate(const char *dir, const char *folder, const char *file, char out[static PATH_MAX])
{
    static const char *const suffixes[] = {"", ".gz"};

    for (size_t i = 0; i < ARRAY_LEN(suffixes); i++) {
        int len = snprintf(out, PATH_MAX, "%s%s/%s%s", dir, folder, file, suffixes[i]);
        if (len > 0 && len < PATH_MAX && access(out, F_OK) == 0)
            return true;
    }
    return false;
}

static int locate_all(const char *dir, const char *folder, struct dataset_files *files, int *ret_missing)
{
    int found = 0;

    for (int i = 0; i < DATASET_PARTS; i++) {
        if (locate(dir, folder, parts[i].file, files->path[i]))
            found++;
        else
            *ret_missing = i;
    }
    return found;
}

static int not_found(const char *dir, enum dataset_name name, struct err *err)
{
    char where[128] = "";
    size_t used = 0;

    for (size_t i = 0; i < ARRAY_LEN(places) && used < sizeof(where); i++) {
        if (name != DATASET_ANY && places[i].name != DATASET_ANY && places[i].name != name)
            continue;
        const char *folder = places[i].folder[0] ? places[i].folder + 1 : "and itself";
        used += (size_t)snprintf(where + used, sizeof(where) - used, "%s%s", used ? ", " : "", folder);
    }
    return err_set(err, ERR_NOT_FOUND, "%.60s: no %s: expected %s[.gz] in its folders %s", dir,
                   titles[name].text, parts[DATASET_TRAIN_IMAGES].file, where);
}

/* With no name asked for, files of both in named folders leave open which one is meant. */
static int check_single(const char *dir, size_t chosen, struct err *err)
{
    struct dataset_files other;
    int missing;

    for (size_t i = chosen + 1; i < ARRAY_LEN(places); i++) {
        if (places[i].name == DATASET_ANY || places[i].name == places[chosen].name)
            continue;
        if (locate_all(dir, places[i].folder, &other, &missing) > 0)
            return err_set(err, ERR_INVALID, "%s: holds both MNIST and Fashion-MNIST: choose by --dataset",
                           dir);
    }
    return 0;
}

static int find_paths(const char *dir, enum dataset_name name, struct dataset_files *files, struct err *err)
{
    for (size_t i = 0; i < ARRAY_LEN(places); i++) {
        int missing = 0;
        if (name != DATASET_ANY && places[i].name != DATASET_ANY && places[i].name != name)
            continue;
        int found = locate_all(dir, places[i].folder, files, &missing);
        if (!found)
            continue;
        if (found < DATASET_PARTS)
            return err_set(err, ERR_NOT_FOUND, "%s%s: %s[.gz] is missing (%d of %d files found)", dir,
                           places[i].folder, parts[missing].file, found, DATASET_PARTS);
        if (name == DATASET_ANY && places[i].name != DATASET_ANY)
            return check_single(dir, i, err);
        return 0;
    }
    return not_found(dir, name, err);
}

static int check_pair(const struct dataset_files *f, enum dataset_part images, enum dataset_part labels,
                      struct err *err)
{
    if (f->shape[images].items != f->shape[labels].items)
        return err_set(err, ERR_INVALID,
                       "%s: items: %" PRId32 " labels, expected %" PRId32 " as %s has images",
                       f->path[labels], f->shape[labels].items, f->shape[images].items, parts[images].file);
    return 0;
}

int dataset_find(const char *dir, enum dataset_name name, struct dataset_files *ret, struct err *err)
{
    const struct idx_shape *train = &ret->shape[DATASET_TRAIN_IMAGES];
    const struct idx_shape *test = &ret->shape[DATASET_TEST_IMAGES];

    if (find_paths(dir, name, ret, err) < 0)
        return -1;
    for (int i = 0; i < DATASET_PARTS; i++) {
        if (idx_probe(ret->path[i], parts[i].kind, &ret->shape[i], err) < 0)
            return -1;
    }
    if (check_pair(ret, DATASET_TRAIN_IMAGES, DATASET_TRAIN_LABELS, err) < 0 ||
        check_pair(ret, DATASET_TEST_IMAGES, DATASET_TEST_LABELS, err) < 0)
        return -1;
    if (train->rows != test->rows || train->cols != test->cols)
        return err_set(err, ERR_INVALID,
                       "%s: %" PRId32 "x%" PRId32 " pixels, expected %" PRId32 "x%" PRId32 " as in %s",
                       ret->path[DATASET_TEST_IMAGES], test->rows, test->cols, train->rows, train->cols,
                       parts[DATASET_TRAIN_IMAGES].file);
    return 0;
}

static size_t part_bytes(const struct dataset_files *files, int part)
{
    return (idx_bytes(&files->shape[part]) + ALIGN - 1) / ALIGN * ALIGN;
}

size_t dataset_bytes(const struct dataset_files *files)
{
    size_t sum = 0;

    for (int i = 0; i < DATASET_PARTS; i++)
        sum += part_bytes(files, i);
    return sum;
}

static int check_labels(const char *path, const uint8_t *labels, int32_t items, struct err *err)
{
    for (int32_t i = 0; i < items; i++) {
        if (labels[i] >= DATASET_CLASSES)
            return err_set(err, ERR_INVALID, "%s: label of item %" PRId32 ": %d, expected 0..%d", path, i,
                           labels[i], DATASET_CLASSES - 1);
    }
    return 0;
}

int dataset_load(const struct dataset_files *files, uint8_t *mem, size_t mem_bytes, struct dataset *ret,
                 struct err *err)
{
    uint8_t *at = mem;

    if (mem_bytes < dataset_bytes(files))
        return err_set(err, ERR_INVALID, "data set: %zu bytes of memory, expected %zu", mem_bytes,
                       dataset_bytes(files));
    for (int i = 0; i < DATASET_PARTS; i++) {
        if (idx_load(files->path[i], parts[i].kind, &files->shape[i], at, err) < 0)
            return -1;
        if (parts[i].kind == IDX_LABELS && check_labels(files->path[i], at, files->shape[i].items, err) < 0)
            return -1;
        at += part_bytes(files, i);
    }
    *ret = dataset_view(files, mem);
    return 0;
}

struct dataset dataset_view(const struct dataset_files *files, const uint8_t *mem)
{
    const uint8_t *at[DATASET_PARTS];

    for (int i = 0; i < DATASET_PARTS; i++) {
        at[i] = mem;
        mem += part_bytes(files, i);
    }
    return (struct dataset){
        .train_items = files->shape[DATASET_TRAIN_IMAGES].items,
        .test_items = files->shape[DATASET_TEST_IMAGES].items,
        .rows = files->shape[DATASET_TRAIN_IMAGES].rows,
        .cols = files->shape[DATASET_TRAIN_IMAGES].cols,
        .train_images = at[DATASET_TRAIN_IMAGES],
        .train_labels = at[DATASET_TRAIN_LABELS],
        .test_images = at[DATASET_TEST_IMAGES],
        .test_labels = at[DATASET_TEST_LABELS],
    };
}
