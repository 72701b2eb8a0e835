/* progress.c - combine the lines of a training into one position in its run; compute percent and time
 * left. */
#include "launcher/progress/progress.h"

#include <math.h>

enum {
    FALLS = 3,          /* after this many lower positions in a row, accept that it went back */
    ESTIMATE_MS = 1000, /* the least time between two estimates of the rate */
    MEMORY_MS = 30000 /* time constant of the rate's mean, or a quarter of the time since the start if that is
                       * longer */
};

struct progress_seen progress_nothing(void)
{
    return (struct progress_seen){.step = -1,
                                  .total_steps = -1,
                                  .epoch = -1,
                                  .total_epochs = -1,
                                  .within = NAN,
                                  .loss = NAN,
                                  .samples_per_second = NAN,
                                  .percent = NAN};
}

bool progress_says(const struct progress_seen *s)
{
    return s->several || s->step >= 0 || s->total_steps >= 0 || s->epoch >= 0 || s->total_epochs >= 0 ||
           isfinite(s->percent) || isfinite(s->loss) || isfinite(s->samples_per_second);
}

/* The first line with an epoch, or with its total: steps that began before it and have not ended are steps of
 * the run. */
static void begin_epochs(struct position *p)
{
    if (p->unclear || p->step >= p->steps)
        p->step = p->steps = -1;
    p->unclear = p->zero_based = false;
    p->epochs = -1;
}

/* False: the line's epoch is not usable. */
static bool take_epoch(struct position *p, const struct progress_seen *s)
{
    const bool paired = s->total_epochs > 0;

    if (s->epoch < 0 || (p->paired && !paired))
        return false;
    if (p->epochs < 0 || (paired && !p->paired))
        begin_epochs(p);
    p->paired = paired;
    p->total_epochs = paired ? s->total_epochs : p->total_epochs;
    p->zero_based = p->zero_based || s->epoch == 0;
    const int64_t epochs = s->epoch - !p->zero_based;
    if (paired && epochs == 0 && p->epochs > 0 && (double)p->epochs + p->within >= (double)p->total_epochs)
        p->several = true; /* they begin again after the last one: another fold or stage */
    if (epochs != p->epochs) {
        p->epochs = epochs;
        p->within = 0;
        p->ended = false;
        p->fresh = true;
    }
    return true;
}

static void take_epoch_step(struct position *p, int64_t step, int64_t steps)
{
    p->within = (double)step / (double)steps;
    p->epoch_steps = steps;
    p->heard_step = step;
    p->ended = p->fresh = false;
}

/* Whether the step continues in a new epoch from the last one: it may be a step of the run. */
static bool goes_on(const struct position *p, int64_t step, int64_t steps)
{
    return p->fresh && p->heard_step >= 0 && step > p->heard_step &&
           floor((double)step / (double)steps * (double)p->total_epochs) == (double)p->epochs;
}

/* Use a step on a line with an epoch, or a bar's step. */
static void take_step_behind_epoch(struct position *p, int64_t step, int64_t steps)
{
    if ((p->ended && step >= steps) || (p->epoch_steps > 0 && steps != p->epoch_steps))
        return; /* the end of a bar after the line that ended its epoch, or a validation bar */
    if (p->ended) {
        p->epochs++;
        p->fresh = true;
    }
    p->several = p->several || goes_on(p, step, steps);
    take_epoch_step(p, step, steps);
}

static void take_step(struct position *p, int64_t step, int64_t steps)
{
    const bool in_epochs = p->epochs >= 0;

    if (steps < 0) { /* of the run, unless lines report epochs */
        p->step = in_epochs && p->steps <= 0 ? p->step : step;
    } else if (p->steps <= 0 && in_epochs) {
        take_step_behind_epoch(p, step, steps);
    } else if (p->steps <= 0 || (steps == p->steps && (in_epochs || p->step < steps || step == steps))) {
        p->step = step;
        p->steps = steps;
    } else if (!in_epochs && (steps >= p->steps || p->step >= p->steps)) {
        p->unclear = true;
    }
}

static void position_take(struct position *p, const struct progress_seen *s)
{
    p->several = p->several || s->several;
    if (s->download) {
        if (p->steps == s->total_steps)
            p->step = p->steps = -1;
        return;
    }
    const bool epoch = take_epoch(p, s);

    if (s->epoch < 0 && s->total_epochs > 0 && !p->paired)
        p->total_epochs = s->total_epochs;
    if (s->total_steps > 0 && s->step < 0)
        p->steps = s->total_steps;
    else if (s->step >= 0 && !s->in_epoch)
        take_step(p, s->step, s->total_steps);
    else if (epoch && s->step >= 0)
        take_epoch_step(p, s->step, s->total_steps);
    else if (epoch && isfinite(s->within)) {
        p->chatty = p->chatty || (p->ended && p->paired && isfinite(s->loss));
        p->within = p->chatty ? 0 : s->within;
        p->ended = p->within >= 1;
    }
}

static int64_t count(double v)
{
    return v >= 0 && v <= (double)PROGRESS_COUNT_MAX ? (int64_t)(v + 0.5) : -1;
}

static struct progress_seen position_now(const struct position *p)
{
    struct progress_seen now = progress_nothing();
    const double done = (double)p->epochs + p->within;

    if (!p->several && !(p->paired && p->zero_based)) /* "epoch 0/10" is the first of 10 or of 11: no
                                                       * percent */
        now.total_epochs = p->total_epochs;
    if (p->epochs >= 0)
        now.epoch = now.total_epochs > 0 && p->epochs >= now.total_epochs ? now.total_epochs : p->epochs + 1;
    if (p->several || p->unclear)
        return now;
    now.step = p->step;
    if (p->steps > 0 && p->step >= 0) {
        now.total_steps = p->steps;
        now.percent = fmin(100, 100 * (double)p->step / (double)p->steps);
    } else if (p->epochs >= 0) {
        if (p->epoch_steps > 0)
            now.step = count(done * (double)p->epoch_steps);
        if (p->epoch_steps > 0 && now.total_epochs > 0)
            now.total_steps = count((double)now.total_epochs * (double)p->epoch_steps);
        if (now.total_epochs > 0)
            now.percent = fmin(100, 100 * done / (double)now.total_epochs);
    }
    return now;
}

void progress_init(struct progress *p)
{
    const struct position unknown = {
        .epochs = -1, .total_epochs = -1, .epoch_steps = -1, .heard_step = -1, .step = -1, .steps = -1};

    *p = (struct progress){.now = progress_nothing(), .eta_ms = -1, .position = unknown};
}

/* The progress file has exact values: use them as they are. */
static struct progress_seen position_of_file(const struct progress_seen *s)
{
    struct progress_seen now = *s;

    if (isnan(s->percent) && s->step >= 0 && s->total_steps > 0)
        now.percent = fmin(100, 100 * (double)s->step / (double)s->total_steps);
    else if (isnan(s->percent) && s->epoch > 0 && s->total_epochs > 0)
        now.percent = fmin(100, 100 * (double)(s->epoch - 1) / (double)s->total_epochs);
    return now;
}

static void mark(struct progress *p, int64_t now_ms)
{
    p->last_ms = now_ms;
    p->last_percent = p->now.percent;
}

/* Restart the measurement. */
static void start_estimate(struct progress *p, int64_t now_ms)
{
    mark(p, now_ms);
    p->since_ms = now_ms;
    p->estimated = false;
    p->eta_ms = p->now.percent >= 100 ? 0 : -1;
}

/* Estimate the time left; show it if it agrees with the previous estimate. */
static void estimate(struct progress *p, int64_t now_ms)
{
    const double passed = (double)(now_ms - p->last_ms), done = p->now.percent - p->last_percent;

    if (p->now.percent >= 100)
        p->eta_ms = 0;
    else if (!p->estimated && now_ms - p->since_ms < ESTIMATE_MS)
        mark(p, now_ms); /* buffered lines arrive all at once */
    if (p->now.percent >= 100 || passed < ESTIMATE_MS || done <= 0)
        return;
    const double memory = fmax((double)(now_ms - p->since_ms) / 4, MEMORY_MS);
    const double weight = p->estimated ? 1 - exp(-passed / memory) : 1;
    p->percent_per_ms = weight * (done / passed) + (1 - weight) * p->percent_per_ms;
    const double left = (100 - p->now.percent) / p->percent_per_ms, before = p->left_ms - passed;
    const bool agree = p->estimated && fabs(left - before) <= left / 4;
    p->eta_ms = agree && left < (double)PROGRESS_COUNT_MAX ? (int64_t)left : -1;
    p->left_ms = left;
    p->estimated = true;
    mark(p, now_ms);
}

static void take_position(struct progress *p, const struct progress_seen *now, int64_t now_ms)
{
    const bool same = now->total_steps == p->now.total_steps && now->total_epochs == p->now.total_epochs;
    const bool rises = now->percent >= p->now.percent;

    /* A lower percent counts only if it is of another kind, or repeats: lines of two pipes may be out of
     * order. */
    p->falls = same && now->percent < p->now.percent ? p->falls + 1 : 0;
    if (p->falls > 0 && p->falls < FALLS)
        return;
    p->falls = 0;
    p->now = *now;
    if (same && rises)
        estimate(p, now_ms);
    else
        start_estimate(p, now_ms);
}

void progress_take(struct progress *p, const struct progress_seen *s, bool from_file, int64_t now_ms,
                   int64_t wall_ms)
{
    if (p->from_file && !from_file)
        return;
    p->from_file = from_file;
    p->wall_ms = wall_ms;
    p->now.loss = isfinite(s->loss) ? s->loss : p->now.loss;
    p->now.samples_per_second =
        isfinite(s->samples_per_second) ? s->samples_per_second : p->now.samples_per_second;
    if (!from_file)
        position_take(&p->position, s);
    struct progress_seen now = from_file ? position_of_file(s) : position_now(&p->position);
    now.loss = p->now.loss;
    now.samples_per_second = p->now.samples_per_second;
    take_position(p, &now, now_ms);
}
