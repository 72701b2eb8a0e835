/* dataset.c - find the four IDX files of a data set. */
#include "trainer/data/dataset.h"

#include <dirent.h>
#include <fnmatch.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

const char *const DATASET_FILE[DATASET_PARTS] = {
    [DATASET_TRAIN_IMAGES] = "train-images-idx3-ubyte",
    [DATASET_TRAIN_LABELS] = "train-labels-idx1-ubyte",
    [DATASET_TEST_IMAGES] = "t10k-images-idx3-ubyte",
    [DATASET_TEST_LABELS] = "t10k-labels-idx1-ubyte",
};

/* In the order in which they are tried. */
static const struct location {
    enum dataset_name name;
    const char *folder;
} locations[] = {
    {DATASET_MNIST, "/MNIST/raw"}, {DATASET_FASHION_MNIST, "/FashionMNIST/raw"},
    {DATASET_MNIST, "/mnist"},     {DATASET_FASHION_MNIST, "/fashion-mnist"},
    {DATASET_ANY, "/raw"},         {DATASET_ANY, ""},
};

static const char *const titles[] = {[DATASET_ANY] = "MNIST or Fashion-MNIST",
                                     [DATASET_MNIST] = "MNIST",
                                     [DATASET_FASHION_MNIST] = "Fashion-MNIST"};

static bool is_for(const struct location *p, enum dataset_name name)
{
    return name == DATASET_ANY || p->name == DATASET_ANY || p->name == name;
}

/* Find the plain file, else the .gz file; false: neither exists, or the path is too long. */
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

static int locate_all(const char *dir, const char *folder, char path[static DATASET_PARTS][PATH_MAX],
                      int *ret_missing)
{
    int found = 0;

    for (int i = 0; i < DATASET_PARTS; i++) {
        if (locate(dir, folder, DATASET_FILE[i], path[i]))
            found++;
        else
            *ret_missing = i;
    }
    return found;
}

/* Refuse a file that is almost named like one of the four, such as train-images.idx3-ubyte: the user has to
 * rename it, since a download could give other data. */
static int check_names(const char *dir, const char *folder, struct err *err)
{
    static const char ours[] =
        "@(train|t10k)-@(images-idx3|labels-idx1)-ubyte?(.gz|.gz.part|.gz.+([0-9]).tmp)";
    char path[PATH_MAX];
    const struct dirent *e;

    snprintf(path, sizeof(path), "%s%s", dir, folder);
    cleanup_closedir DIR *d = opendir(path);
    while (d && (e = readdir(d)))
        if (!fnmatch("*idx[13]*", e->d_name, FNM_CASEFOLD) && fnmatch(ours, e->d_name, FNM_EXTMATCH))
            return err_set(
                err, ERR_INVALID,
                "%.80s/%.60s: expected a name as {train,t10k}-{images-idx3,labels-idx1}-ubyte[.gz]", path,
                e->d_name);
    return 0;
}

static int not_found(const char *dir, enum dataset_name name, struct err *err)
{
    char where[128] = "";
    size_t used = 0;

    for (size_t i = 0; i < ARRAY_LEN(locations) && used < sizeof(where); i++) {
        if (!is_for(&locations[i], name))
            continue;
        const char *folder = locations[i].folder[0] ? locations[i].folder + 1 : "and itself";
        used += (size_t)snprintf(where + used, sizeof(where) - used, "%s%s", used ? ", " : "", folder);
    }
    return err_set(err, ERR_NOT_FOUND, "%.60s: no %s: expected %s[.gz] in its folders %s", dir, titles[name],
                   DATASET_FILE[DATASET_TRAIN_IMAGES], where);
}

/* With DATASET_ANY, refuse files of both data sets in named folders. */
static int check_single(const char *dir, size_t chosen, struct err *err)
{
    char other[DATASET_PARTS][PATH_MAX];
    int missing;

    for (size_t i = chosen + 1; i < ARRAY_LEN(locations); i++) {
        if (locations[i].name == DATASET_ANY || locations[i].name == locations[chosen].name)
            continue;
        if (locate_all(dir, locations[i].folder, other, &missing) > 0)
            return err_set(err, ERR_INVALID, "%s: holds both MNIST and Fashion-MNIST: choose by --dataset",
                           dir);
    }
    return 0;
}

int dataset_find(const char *dir, enum dataset_name name, char path[static DATASET_PARTS][PATH_MAX],
                 struct err *err)
{
    for (size_t i = 0; i < ARRAY_LEN(locations); i++) {
        int missing = 0;
        if (!is_for(&locations[i], name))
            continue;
        int found = locate_all(dir, locations[i].folder, path, &missing);
        if (!found)
            continue;
        if (found < DATASET_PARTS)
            return check_names(dir, locations[i].folder, err)
                       ? -1
                       : err_set(err, ERR_NOT_FOUND, "%s%s: %s[.gz] is missing (%d of %d files found)", dir,
                                 locations[i].folder, DATASET_FILE[missing], found, DATASET_PARTS);
        if (name == DATASET_ANY && locations[i].name != DATASET_ANY)
            return check_single(dir, i, err);
        return 0;
    }
    for (size_t i = 0; i < ARRAY_LEN(locations); i++)
        if (is_for(&locations[i], name) && check_names(dir, locations[i].folder, err))
            return -1;
    return not_found(dir, name, err);
}
