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

/* Whether steps of c->step_samples lead to where c is. */
static bool explains(const struct cursor *c)
{
    const int64_t steps = cursor_steps(c);

    return c->step - c->epoch_step == (c->epoch - 1) * steps &&
           (c->epoch_step < steps ? c->consumed == c->epoch_step * c->step_samples : c->consumed >= c->items);
}

bool cursor_find_step(struct cursor *c, int64_t now)
{
    const int64_t tries[] = {now, c->epoch_step ? c->consumed / c->epoch_step : 0};

    for (int i = 0; i < 2; i++) {
        c->step_samples = tries[i];
        if (c->step_samples && explains(c))
            return true;
    }
    c->step_samples = now;
    return false;
}
