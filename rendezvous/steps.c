/* steps.c - merge step times, and compare the slowest rank with the median. */
#include "rendezvous/steps.h"

#include <stdlib.h>

static int by_median(const void *x, const void *y)
{
    const struct steps *a = x, *b = y;

    return (a->median_us > b->median_us) - (a->median_us < b->median_us);
}

void steps_merge(struct steps *part, int n, struct steps *ret)
{
    struct steps all = {.window = ret->window, .slow_us = -1, .wait_us = STEPS_US_MAX};
    int64_t before = 0;

    qsort(part, (size_t)n, sizeof(*part), by_median);
    for (int i = 0; i < n; i++) {
        all.ranks += part[i].ranks;
        if (part[i].slow_us > all.slow_us) {
            all.slow_us = part[i].slow_us;
            all.slow_rank = part[i].slow_rank;
        }
        if (part[i].wait_us < all.wait_us)
            all.wait_us = part[i].wait_us;
    }
    for (int i = 0; i < n && 2 * before < all.ranks; i++) {
        all.median_us = part[i].median_us;
        before += part[i].ranks;
    }
    *ret = all;
}

double steps_ratio(const struct steps *s)
{
    const int64_t median = s->median_us + s->wait_us;

    return median > 0 ? (double)(s->slow_us + s->wait_us) / (double)median : 1;
}
