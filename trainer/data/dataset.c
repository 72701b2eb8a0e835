/* dataset.c - find the IDX files of a data set, check that they agree, and read them. */
#include "trainer/data/dataset.h"

#include <dirent.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

const char *const DATASET_FILE[DATASET_PARTS] = {
    [DATASET_TRAIN_IMAGES] = "train-images-idx3-ubyte",
    [DATASET_TRAIN_LABELS] = "train-labels-idx1-ubyte",
    [DATASET_TEST_IMAGES] = "t10k-images-idx3-ubyte",
    [DATASET_TEST_LABELS] = "t10k-labels-idx1-ubyte",
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

static const char *const titles[] = {[DATASET_ANY] = "MNIST or Fashion-MNIST",
                                     [DATASET_MNIST] = "MNIST",
                                     [DATASET_FASHION_MNIST] = "Fashion-MNIST"};

static bool is_for(const struct place *p, enum dataset_name name)
{
    return name == DATASET_ANY || p->name == DATASET_ANY || p->name == name;
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
        if (locate(dir, folder, DATASET_FILE[i], files->path[i]))
            found++;
        else
            *ret_missing = i;
    }
    return found;
}

/* A file that says that it is one of the four by another name, as train-images.idx3-ubyte: to be renamed, since a download
 * would give other data than the user has. */
static int check_names(const char *dir, const char *folder, struct err *err)
{
    static const char ours[] = "@(train|t10k)-@(images-idx3|labels-idx1)-ubyte?(.gz|.gz.part)";
    char path[PATH_MAX];
    const struct dirent *e;
    int rc = 0;

    snprintf(path, sizeof(path), "%s%s", dir, folder);
    DIR *d = opendir(path);
    while (d && !rc && (e = readdir(d)))
        if (!fnmatch("*idx[13]*", e->d_name, FNM_CASEFOLD) && fnmatch(ours, e->d_name, FNM_EXTMATCH))
            rc = err_set(err, ERR_INVALID,
                         "%.80s/%.60s: expected a name as {train,t10k}-{images-idx3,labels-idx1}-ubyte[.gz]",
                         path, e->d_name);
    if (d)
        closedir(d);
    return rc;
}

static int not_found(const char *dir, enum dataset_name name, struct err *err)
{
    char where[128] = "";
    size_t used = 0;

    for (size_t i = 0; i < ARRAY_LEN(places) && used < sizeof(where); i++) {
        if (!is_for(&places[i], name))
            continue;
        const char *folder = places[i].folder[0] ? places[i].folder + 1 : "and itself";
        used += (size_t)snprintf(where + used, sizeof(where) - used, "%s%s", used ? ", " : "", folder);
    }
    return err_set(err, ERR_NOT_FOUND, "%.60s: no %s: expected %s[.gz] in its folders %s", dir, titles[name],
                   DATASET_FILE[DATASET_TRAIN_IMAGES], where);
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
        if (!is_for(&places[i], name))
            continue;
        int found = locate_all(dir, places[i].folder, files, &missing);
        if (!found)
            continue;
        if (found < DATASET_PARTS)
            return check_names(dir, places[i].folder, err)
                       ? -1
                       : err_set(err, ERR_NOT_FOUND, "%s%s: %s[.gz] is missing (%d of %d files found)", dir,
                                 places[i].folder, DATASET_FILE[missing], found, DATASET_PARTS);
        if (name == DATASET_ANY && places[i].name != DATASET_ANY)
            return check_single(dir, i, err);
        return 0;
    }
    for (size_t i = 0; i < ARRAY_LEN(places); i++)
        if (is_for(&places[i], name) && check_names(dir, places[i].folder, err))
            return -1;
    return not_found(dir, name, err);
}

static int check_pair(const struct dataset_files *f, enum dataset_part images, enum dataset_part labels,
                      struct err *err)
{
    if (f->shape[images].items != f->shape[labels].items)
        return err_set(err, ERR_INVALID,
                       "%s: items: %" PRId32 " labels, expected %" PRId32 " as %s has images",
                       f->path[labels], f->shape[labels].items, f->shape[images].items, f->path[images]);
    return 0;
}

int dataset_probe_pair(struct dataset_files *f, enum dataset_part images, struct err *err)
{
    enum dataset_part labels = images + 1;

    if (idx_probe(f->path[images], IDX_IMAGES, &f->shape[images], err) < 0 ||
        idx_probe(f->path[labels], IDX_LABELS, &f->shape[labels], err) < 0)
        return -1;
    return check_pair(f, images, labels, err);
}

/* Test images must be as large as those trained on. */
int dataset_check_sides(const struct dataset_files *f, struct err *err)
{
    const struct idx_shape *train = &f->shape[DATASET_TRAIN_IMAGES];
    const struct idx_shape *test = &f->shape[DATASET_TEST_IMAGES];

    if (train->rows == test->rows && train->cols == test->cols)
        return 0;
    return err_set(err, ERR_INVALID,
                   "%s: %" PRId32 "x%" PRId32 " pixels, expected %" PRId32 "x%" PRId32 " as in %s",
                   f->path[DATASET_TEST_IMAGES], test->rows, test->cols, train->rows, train->cols,
                   f->path[DATASET_TRAIN_IMAGES]);
}

int dataset_find(const char *dir, enum dataset_name name, struct dataset_files *ret, struct err *err)
{
    if (find_paths(dir, name, ret, err) < 0 || dataset_probe_pair(ret, DATASET_TRAIN_IMAGES, err) < 0 ||
        dataset_probe_pair(ret, DATASET_TEST_IMAGES, err) < 0)
        return -1;
    return dataset_check_sides(ret, err);
}

struct data_layout dataset_layout(const struct dataset_files *files)
{
    const struct idx_shape *train = &files->shape[DATASET_TRAIN_IMAGES];

    return (struct data_layout){.train_items = train->items,
                                .test_items = files->shape[DATASET_TEST_IMAGES].items,
                                .rows = train->rows,
                                .cols = train->cols,
                                .channels = 1};
}

/* One byte each into int32_t: read behind, spread from the front. */
static int load_labels(const char *path, const struct idx_shape *shape, int32_t *labels, int classes,
                       struct err *err)
{
    const uint8_t *bytes = (uint8_t *)labels + 3 * (size_t)shape->items;

    if (idx_load(path, IDX_LABELS, shape, (uint8_t *)labels + 3 * (size_t)shape->items, err) < 0)
        return -1;
    for (int32_t i = 0; i < shape->items; i++) {
        int32_t label = bytes[i];
        if (label >= classes)
            return err_set(err, ERR_INVALID, "%s: label of item %" PRId32 ": %d, expected 0..%d", path, i,
                           label, classes - 1);
        labels[i] = label;
    }
    return 0;
}

int dataset_load(const struct dataset_files *files, struct dataset *d, int classes, struct err *err)
{
    for (int i = DATASET_TRAIN_IMAGES; i < DATASET_PARTS; i += 2) {
        const struct data_part *part = i == DATASET_TRAIN_IMAGES ? &d->train : &d->test;
        if (!part->items)
            continue;
        if (idx_load(files->path[i], IDX_IMAGES, &files->shape[i], part->x, err) < 0 ||
            load_labels(files->path[i + 1], &files->shape[i + 1], part->labels, classes, err) < 0)
            return -1;
    }
    return 0;
}
