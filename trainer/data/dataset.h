/* dataset.h - where the four IDX files of MNIST and Fashion-MNIST lie below --data.
 *
 * Errors: ERR_NOT_FOUND lists what was looked for and where; ERR_INVALID names what leaves open which data are meant.
 */
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

/* Looks in dir/MNIST/raw, dir/FashionMNIST/raw, dir/mnist, dir/fashion-mnist (those of the name asked for), dir/raw
 * and dir itself, for plain files before .gz ones. The first folder that holds any of the four must hold all. With
 * DATASET_ANY a dir that holds both data sets is refused, and where none is whole a file there whose name is nearly one of
 * the four. On failure `path` is undefined. */
int dataset_find(const char *dir, enum dataset_name name, char path[static DATASET_PARTS][PATH_MAX],
                 struct err *err) MUST_CHECK;

#endif
