/* split.c - split items at random into two sets by one permutation. */
#include "trainer/data/split.h"

#include <inttypes.h>
#include <math.h>

void split_random(struct torch_rng *g, int64_t first_items, int64_t second_items, uint32_t *order,
                  struct split *ret)
{
    torch_rng_randperm(g, order, (size_t)(first_items + second_items));
    *ret = (struct split){order, first_items, order + first_items, second_items};
}

/* random_split rounds both shares down and distributes the rest to the parts in turn, beginning with the
 * first. */
static int64_t fraction_of(double val_fraction, int64_t items)
{
    int64_t train = (int64_t)floor((double)items * (1 - val_fraction));
    int64_t val = (int64_t)floor((double)items * val_fraction);

    return val + (items - train - val) / 2;
}

int split_sizes(const struct split_spec *s, int64_t items, int64_t *ret_train, int64_t *ret_val,
                struct err *err)
{
    int64_t val = s->val_fraction > 0 ? fraction_of(s->val_fraction, items) : s->val_items;
    int64_t train = s->train_items ? s->train_items : items - val;

    if (train < 1 || train + val != items)
        return err_set(err, ERR_INVALID,
                       "data: train_items %" PRId64 " and val_items %" PRId64
                       ", but the data set has %" PRId64 " training images",
                       train, val, items);
    *ret_train = train;
    *ret_val = val;
    return 0;
}
