/* dataset.h - find the four IDX files of MNIST or Fashion-MNIST below --data. data/formats/idx.c and fetch.c
 * call it.
 *
 * Errors: ERR_NOT_FOUND lists the expected names and folders; ERR_INVALID names the files that make the
 *         choice ambiguous. */
#ifndef TK_TRAINER_DATA_DATASET_H
#define TK_TRAINER_DATA_DATASET_H

#include "common/cleanup.h"
#include "common/err.h"

#include <limits.h>

enum dataset_name { DATASET_ANY, DATASET_MNIST, DATASET_FASHION_MNIST };

enum dataset_part { DATASET_TRAIN_IMAGES, DATASET_TRAIN_LABELS, DATASET_TEST_IMAGES, DATASET_TEST_LABELS };
enum { DATASET_PARTS = 4, DATASET_CLASSES = 10 };

/* "train-images-idx3-ubyte", ... */
extern const char *const DATASET_FILE[DATASET_PARTS];

/* Looks in dir/MNIST/raw, dir/FashionMNIST/raw, dir/mnist, dir/fashion-mnist (those of `name`), dir/raw and
 * dir itself, for plain files before .gz files. The first folder with any of the four files must have all of
 * them. With DATASET_ANY it refuses a dir that has both data sets. If no set is complete, it refuses a file
 * whose name is almost one of the four. On failure `path` is undefined. */
int dataset_find(const char *dir, enum dataset_name name, char path[static DATASET_PARTS][PATH_MAX],
                 struct err *err) MUST_CHECK;

#endif
