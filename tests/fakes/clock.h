/* clock.h - a clock that only a test moves, for loops and fake API servers. */
#ifndef TK_TESTS_FAKES_CLOCK_H
#define TK_TESTS_FAKES_CLOCK_H

#include "common/clock.h"

struct fake_clock {
    int64_t wall_ms, mono_ms;
};

static inline int64_t fake_clock_wall_ms(void *ctx)
{
    return ((struct fake_clock *)ctx)->wall_ms;
}

static inline int64_t fake_clock_mono_ms(void *ctx)
{
    return ((struct fake_clock *)ctx)->mono_ms;
}

/* Borrows c. */
static inline struct clock fake_clock(struct fake_clock *c)
{
    return (struct clock){fake_clock_wall_ms, fake_clock_mono_ms, fake_clock_mono_ms, NULL, c};
}

static inline void fake_clock_pass(struct fake_clock *c, int64_t ms)
{
    c->wall_ms += ms;
    c->mono_ms += ms;
}

#endif
