/* cursor.c - the time of a run's schedule, in steps of the run's first world. */
#include "trainer/state/cursor.h"

int64_t cursor_steps(const struct cursor *c)
{
    return (c->items + c->step_samples - 1) / c->step_samples;
}

double cursor_time(const struct cursor *c)
{
    const int64_t taken = c->consumed < c->items ? c->consumed : c->items; /* without padding */

    return (double)((c->epoch - 1) * cursor_steps(c)) + (double)taken / (double)c->step_samples;
}
