/* dataset.h - image data sets of four IDX files (MNIST, Fashion-MNIST or others of the format), found under --data.
 *
 * In two steps, so that memory for them can be made in between: paths and shapes, then the bytes.
 *
 * Ownership: the caller owns the memory.
 * Errors:    ERR_NOT_FOUND lists what was looked for and where; ERR_INVALID names file, field, value and what
 *            was expected; ERR_FATAL cannot read.
 */
#ifndef TK_TRAINER_DATA_DATASET_H
#define TK_TRAINER_DATA_DATASET_H

#include "trainer/data/idx.h"
#include "trainer/data/layout.h"

#include <limits.h>
#include <stdbool.h>

enum dataset_name { DATASET_ANY, DATASET_MNIST, DATASET_FASHION_MNIST };

enum dataset_part { DATASET_TRAIN_IMAGES, DATASET_TRAIN_LABELS, DATASET_TEST_IMAGES, DATASET_TEST_LABELS };
enum { DATASET_PARTS = 4, DATASET_CLASSES = 10 };

/* A path of "" is none, and its shape all zeros. */
struct dataset_files {
    char path[DATASET_PARTS][PATH_MAX];
    struct idx_shape shape[DATASET_PARTS];
};

/* "train-images-idx3-ubyte", ... */
extern const char *const DATASET_FILE[DATASET_PARTS];

/* Looks in dir/MNIST/raw, dir/FashionMNIST/raw, dir/mnist, dir/fashion-mnist (those of the name asked for), dir/raw
 * and dir itself, for plain files before .gz ones. The first folder that holds any of the four must hold all; their
 * headers are checked against each other. With DATASET_ANY a dir that holds both data sets is refused,
 * and where none is whole a file there whose name is nearly one of the four. On failure *ret is undefined. */
int dataset_find(const char *dir, enum dataset_name name, struct dataset_files *ret,
                 struct err *err) MUST_CHECK;

/* One pair of files of any names, images and their labels, as the training data (`images` DATASET_TRAIN_IMAGES) or the
 * test data of *ret. */
int dataset_probe_pair(struct dataset_files *ret, enum dataset_part images, struct err *err) MUST_CHECK;

int dataset_check_sides(const struct dataset_files *files, struct err *err) MUST_CHECK;

/* The layout of all that has been probed; parts that have not are empty. */
struct data_layout dataset_layout(const struct dataset_files *files);

/* Inflate into *d, the view of such a layout. Labels must be below `classes`. */
int dataset_load(const struct dataset_files *files, struct dataset *d, int classes,
                 struct err *err) MUST_CHECK;

#endif
