/* position.c - combine what the lines of a training say into one position in its run. */
#include "launcher/progress/position.h"
#include "launcher/progress/progress.h"

#include <math.h>

enum { STRANGERS = 50 }; /* so often a longer bar is seen, and the one that stands still is forgotten */

void position_init(struct position *p)
{
    *p = (struct position){.epochs = -1,
                           .total_epochs = -1,
                           .epoch_steps = -1,
                           .heard_epochs = -1,
                           .step = -1,
                           .steps = -1,
                           .outer_steps = -1,
                           .inner_steps = -1};
}

/* A bar without words that had begun before the first line of an epoch, and has not ended yet, is of the run. */
static void lines_of_epochs(struct position *p)
{
    if (p->outer_steps > 0 && p->outer < p->outer_steps && p->inner_steps < 0 && !p->unclear) {
        p->steps = p->outer_steps;
        p->step = p->outer;
    }
    p->lead = true;
}

/* False: the line's epoch says nothing. */
static bool take_epoch(struct position *p, const struct progress_seen *s)
{
    const bool paired = s->total_epochs > 0;

    if (s->epoch < 0 || (p->paired && !paired))
        return false;
    if (!p->lead || (paired && !p->paired))
        lines_of_epochs(p);
    if (paired && !p->paired) {
        p->zero_based = false;
        p->epochs = -1;
    }
    p->paired = paired;
    p->zero_based = p->zero_based || s->epoch == 0;
    const int64_t epochs = s->epoch - !p->zero_based;
    if (paired)
        p->total_epochs = s->total_epochs + p->zero_based;
    if (paired && epochs == 0 && p->epochs > 0 && (double)p->epochs + p->within >= (double)p->total_epochs)
        p->again = true;
    if (epochs != p->epochs) {
        p->epochs = epochs;
        p->within = 0;
        p->ended = false;
    }
    return true;
}

static void take_epoch_step(struct position *p, int64_t step, int64_t steps)
{
    p->within = (double)step / (double)steps;
    p->epoch_steps = steps;
    p->heard_step = step;
    p->heard_epochs = p->epochs;
    p->ended = false;
}

/* In the next epoch, and beyond where it was in the last one: the bar is not of an epoch, but of the run. */
static bool goes_on(const struct position *p, int64_t step, int64_t steps)
{
    return steps == p->epoch_steps && p->total_epochs > 1 && step < steps && step > p->heard_step &&
           p->heard_epochs >= 0 && p->epochs > p->heard_epochs &&
           floor((double)step / (double)steps * (double)p->total_epochs) == (double)p->epochs;
}

/* A bar, after a line of an epoch. */
static void take_bar_of_epoch(struct position *p, int64_t step, int64_t steps)
{
    if (p->ended && step >= steps)
        return; /* the end of the bar came behind the line that closed its epoch */
    if (p->epoch_steps > 0 && steps != p->epoch_steps && p->heard_epochs == p->epochs && !p->ended)
        return; /* another bar in the same epoch: validation */
    if (p->ended) {
        p->epochs++;
        p->ended = false;
    }
    if (goes_on(p, step, steps)) {
        p->steps = steps;
        p->step = step;
        return;
    }
    take_epoch_step(p, step, steps);
}

static void begin_bar(struct position *p, int64_t step, int64_t steps)
{
    p->outer = step;
    p->outer_steps = steps;
    p->inner_steps = -1;
    p->inner = 0;
    p->strangers = 0;
}

/* A bar without words, or "step 3/40", before any line of an epoch. One that begins behind the end of another, or again, is of an epoch or of
 * something else: nothing tells how much there is in all. */
static void take_bar(struct position *p, const struct progress_seen *s)
{
    const int64_t step = s->step, steps = s->total_steps;
    const bool ended = p->outer >= p->outer_steps;

    if (p->outer_steps < 0 || (!s->bar && steps != p->outer_steps))
        begin_bar(p, step, steps);
    else if (ended && (steps != p->outer_steps || step < steps))
        p->unclear = true;
    else if (steps == p->outer_steps) {
        p->strangers = step == p->outer ? p->strangers : 0;
        p->inner = step == p->outer ? p->inner : 0;
        p->outer = step;
    } else if (steps == p->inner_steps || (p->inner_steps < 0 && p->outer == 0 && steps >= p->outer_steps)) {
        p->inner_steps = steps;
        p->inner = step;
    } else if (steps > p->outer_steps && p->inner_steps < 0 && ++p->strangers > STRANGERS)
        begin_bar(p, step, steps);
}

static void take_step(struct position *p, const struct progress_seen *s)
{
    if (s->total_steps < 0 && p->lead && p->steps <= 0)
        return; /* of the run, or of the epoch that other lines tell of */
    if (s->total_steps < 0 || s->total_steps == p->steps)
        p->step = s->step;
    else if (p->lead)
        take_bar_of_epoch(p, s->step, s->total_steps);
    else
        take_bar(p, s);
}

void position_take(struct position *p, const struct progress_seen *s)
{
    if (s->download) {
        p->outer_steps = p->outer_steps == s->total_steps ? -1 : p->outer_steps;
        return;
    }
    const bool epoch = take_epoch(p, s);

    if (s->epoch < 0 && s->total_epochs > 0 && !p->paired)
        p->total_epochs = s->total_epochs;
    if (s->total_steps > 0 && s->step < 0)
        p->steps = s->total_steps;
    if (s->epoch_step >= 0) {
        p->lead = true;
        take_epoch_step(p, s->epoch_step, s->epoch_steps);
    } else if (s->step >= 0)
        take_step(p, s);
    else if (isfinite(s->epoch_fraction) && (epoch || p->epochs >= 0)) {
        p->within = s->epoch_fraction;
        p->ended = epoch && s->epoch_fraction >= 1;
    } else if (epoch && s->epoch_steps > 0)
        p->epoch_steps = s->epoch_steps;
}

static int64_t count(double v)
{
    return v >= 0 && v <= (double)PROGRESS_COUNT_MAX ? (int64_t)(v + 0.5) : -1;
}

/* "Epoch 0/10" is the first of 10 or of 11. Only of 99 or 100 the percent is the same. */
static bool is_unsure(const struct position *p)
{
    return p->paired && p->zero_based;
}

static void epochs_now(const struct position *p, struct position_now *now)
{
    const double done = (double)p->epochs + p->within;

    now->source = POSITION_EPOCHS;
    if (p->again)
        return;
    now->step = p->epoch_steps > 0 ? count(done * (double)p->epoch_steps) : p->step;
    if (p->total_epochs <= 0 || (is_unsure(p) && p->total_epochs < 100))
        return;
    now->percent = 100 * done / (double)p->total_epochs;
    if (p->epoch_steps > 0 && !is_unsure(p))
        now->total_steps = count((double)p->total_epochs * (double)p->epoch_steps);
}

static void bars_now(const struct position *p, struct position_now *now)
{
    const double each = p->inner_steps > 0 ? (double)p->inner_steps : 1;
    const double done = (double)p->outer * each + (p->inner_steps > 0 ? (double)p->inner : 0);

    now->source = POSITION_BARS;
    if (p->unclear)
        return;
    now->step = count(done);
    now->total_steps = count((double)p->outer_steps * each);
    now->percent = 100 * done / ((double)p->outer_steps * each);
}

struct position_now position_now(const struct position *p)
{
    struct position_now now = {POSITION_NONE, p->step, -1, -1, is_unsure(p) ? -1 : p->total_epochs, NAN};

    if (p->epochs >= 0)
        now.epoch = p->total_epochs > 0 && p->epochs >= p->total_epochs ? p->total_epochs : p->epochs + 1;
    if (p->steps > 0 && p->step >= 0) {
        now.source = POSITION_RUN;
        now.total_steps = p->steps;
        now.percent = 100 * (double)p->step / (double)p->steps;
    } else if (p->lead && p->epochs >= 0) {
        epochs_now(p, &now);
    } else if (p->outer_steps > 0) {
        bars_now(p, &now);
    }
    now.percent = now.percent > 100 ? 100 : now.percent;
    return now;
}
