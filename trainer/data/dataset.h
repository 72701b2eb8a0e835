/* dataset.h - the four IDX files of MNIST or Fashion-MNIST, found under --data and loaded into given memory.
 *
 * In three steps, so that one process can inflate for the others of its pod: dataset_find (paths and shapes),
 * dataset_load (into dataset_bytes bytes of any memory, shared or not), dataset_view (pointers into them; for
 * another process too, whose mapping may lie elsewhere).
 *
 * Ownership: the caller owns the memory; a view borrows it.
 * Errors:    ERR_NOT_FOUND lists what was looked for and where; ERR_INVALID names file, field, value and what
 *            was expected; ERR_FATAL cannot read.
 */
#ifndef TK_TRAINER_DATA_DATASET_H
#define TK_TRAINER_DATA_DATASET_H

#include "trainer/data/idx.h"

#include <limits.h>
#include <stdbool.h>

enum dataset_name { DATASET_ANY, DATASET_MNIST, DATASET_FASHION_MNIST };

/* "mnist", "fashion-mnist"; false when `text` is neither. */
bool dataset_parse(const char *text, enum dataset_name *ret);

enum dataset_part { DATASET_TRAIN_IMAGES, DATASET_TRAIN_LABELS, DATASET_TEST_IMAGES, DATASET_TEST_LABELS };
enum { DATASET_PARTS = 4, DATASET_CLASSES = 10 };

struct dataset_files {
    char path[DATASET_PARTS][PATH_MAX];
    struct idx_shape shape[DATASET_PARTS];
};

struct dataset {
    int32_t train_items;
    int32_t test_items;
    int32_t rows; /* of one image */
    int32_t cols;
    const uint8_t *train_images; /* (train_items, rows, cols) */
    const uint8_t *train_labels; /* (train_items), 0..DATASET_CLASSES-1 */
    const uint8_t *test_images;
    const uint8_t *test_labels;
};

/* Looks in dir/MNIST/raw, dir/FashionMNIST/raw, dir/mnist, dir/fashion-mnist (those of the name asked for), dir/raw
 * and dir itself, for plain files before .gz ones. The first folder that holds any of the four must hold all; their
 * headers are checked against each other. With DATASET_ANY a dir that holds both data sets is refused. On failure
 * *ret is undefined. */
int dataset_find(const char *dir, enum dataset_name name, struct dataset_files *ret,
                 struct err *err) MUST_CHECK;

/* Memory that dataset_load fills. */
size_t dataset_bytes(const struct dataset_files *files);

/* Inflate all four and check every label. */
int dataset_load(const struct dataset_files *files, uint8_t *mem, size_t mem_bytes, struct dataset *ret,
                 struct err *err) MUST_CHECK;

/* The view of memory that dataset_load has filled for the same files. */
struct dataset dataset_view(const struct dataset_files *files, const uint8_t *mem);

#endif
