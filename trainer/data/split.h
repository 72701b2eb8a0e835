/* split.h - split a data set at random into training and validation items, as torch.utils.data.random_split
 * does. session.c calls it. Pure.
 *
 * Order:     draws torch.randperm(items) from `g`. To match PyTorch's default generator, pass the generator
 *            that drew the weights, after them.
 * Ownership: both parts point into `order`, which the caller owns.
 * Errors:    ERR_INVALID if the sizes do not fit the data. */
#ifndef TK_TRAINER_DATA_SPLIT_H
#define TK_TRAINER_DATA_SPLIT_H

#include "common/cleanup.h"
#include "common/err.h"
#include "trainer/rng/torch_rng.h"

struct split {
    const uint32_t *first; /* item numbers */
    int64_t first_items;
    const uint32_t *second;
    int64_t second_items;
};

/* `order` holds first_items + second_items entries, 0..INT32_MAX of them. */
void split_random(struct torch_rng *g, int64_t first_items, int64_t second_items, uint32_t *order,
                  struct split *ret);

/* The number of validation items: val_items, or random_split's share for the fractions [1 - val_fraction,
 * val_fraction]. The other items are for training; train_items other than 0 is the number that is
 * expected. */
struct split_spec {
    int64_t train_items, val_items;
    double val_fraction; /* 0: use val_items */
};
int split_sizes(const struct split_spec *s, int64_t items, int64_t *ret_train, int64_t *ret_val,
                struct err *err) MUST_CHECK;

#endif
