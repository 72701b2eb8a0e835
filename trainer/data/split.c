/* split.c - one permutation, cut in two. */
#include "trainer/data/split.h"

#include <inttypes.h>

int split_random(struct torch_rng *g, int64_t first_items, int64_t second_items, uint32_t *order,
                 struct split *ret, struct err *err)
{
    int64_t items;

    if (first_items < 0 || second_items < 0 || __builtin_add_overflow(first_items, second_items, &items) ||
        items > INT32_MAX)
        return err_set(err, ERR_INVALID, "split: %" PRId64 " and %" PRId64 " items, expected 0..%d together",
                       first_items, second_items, INT32_MAX);
    torch_rng_randperm(g, order, (size_t)items);
    *ret = (struct split){order, first_items, order + first_items, second_items};
    return 0;
}
