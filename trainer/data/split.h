/* split.h - split a data set at random into training and validation items, as torch.utils.data.random_split does. Pure.
 *
 * Order:     draws torch.randperm(items) from `g`: for PyTorch's default generator pass the generator that made the
 *            weights, after them.
 * Ownership: both parts point into `order`, which the caller owns.
 * Errors:    ERR_INVALID of sizes that do not fit the data.
 */
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

/* How many items validate: so many, or random_split's share for the fractions [1 - val_fraction, val_fraction]. The rest
 * trains; train_items other than 0 says how many that must be. */
struct split_spec {
    int64_t train_items, val_items;
    double val_fraction; /* 0: val_items counts */
};
int split_sizes(const struct split_spec *s, int64_t items, int64_t *ret_train, int64_t *ret_val,
                struct err *err) MUST_CHECK;

#endif
