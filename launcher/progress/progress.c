/* progress.c - make steps, percent and time left of what was seen of a training. */
#include "launcher/progress/progress.h"

#include <math.h>

enum {
    FALLS = 3,          /* so often in a row, and the position is believed to have gone back */
    ESTIMATE_MS = 1000, /* the least time between two estimates of the rate */
    MEMORY_MS = 30000 /* the mean of the rate reaches back so far, or a quarter of the time since the start */
};

struct progress_seen progress_nothing(void)
{
    return (struct progress_seen){.step = -1,
                                  .total_steps = -1,
                                  .epoch = -1,
                                  .total_epochs = -1,
                                  .epoch_step = -1,
                                  .epoch_steps = -1,
                                  .epoch_fraction = NAN,
                                  .loss = NAN,
                                  .samples_per_second = NAN,
                                  .percent = NAN};
}

void progress_init(struct progress *p)
{
    *p = (struct progress){.step = -1,
                           .total_steps = -1,
                           .epoch = -1,
                           .total_epochs = -1,
                           .percent = NAN,
                           .loss = NAN,
                           .samples_per_second = NAN,
                           .eta_ms = -1};
    position_init(&p->position);
}

/* The file is the program's own word: nothing is combined. */
static struct position_now position_of_file(const struct progress_seen *s)
{
    double percent = s->percent;

    if (isnan(percent) && s->step >= 0 && s->total_steps > 0)
        percent = 100 * (double)s->step / (double)s->total_steps;
    else if (isnan(percent) && s->epoch > 0 && s->total_epochs > 0)
        percent = 100 * (double)(s->epoch - 1) / (double)s->total_epochs;
    return (struct position_now){POSITION_FILE, s->step,         s->total_steps,
                                 s->epoch,      s->total_epochs, percent > 100 ? 100 : percent};
}

/* Begin to measure anew. */
static void start_estimate(struct progress *p, int64_t now_ms)
{
    p->since_ms = p->last_ms = now_ms;
    p->last_percent = p->percent;
    p->estimated = false;
    p->eta_ms = p->percent >= 100 ? 0 : -1;
}

/* A new estimate of the time left, shown when it agrees with the one before it. */
static void estimate(struct progress *p, int64_t now_ms)
{
    const double passed = (double)(now_ms - p->last_ms), done = p->percent - p->last_percent;

    if (p->percent >= 100) {
        p->eta_ms = 0;
        return;
    }
    if (!p->estimated && now_ms - p->since_ms < ESTIMATE_MS) { /* what was held in a buffer comes at once */
        p->last_ms = now_ms;
        p->last_percent = p->percent;
        return;
    }
    if (passed < ESTIMATE_MS || done <= 0)
        return;
    const double quarter = (double)(now_ms - p->since_ms) / 4,
                 memory = quarter > MEMORY_MS ? quarter : MEMORY_MS;
    const double weight = p->estimated ? 1 - exp(-passed / memory) : 1;
    p->percent_per_ms = weight * (done / passed) + (1 - weight) * p->percent_per_ms;
    const double left = (100 - p->percent) / p->percent_per_ms, before = p->left_ms - passed;
    const bool agree = p->estimated && fabs(left - before) <= left / 4;
    p->eta_ms = agree && left < (double)PROGRESS_COUNT_MAX ? (int64_t)left : -1;
    p->left_ms = left;
    p->last_ms = now_ms;
    p->last_percent = p->percent;
    p->estimated = true;
}

/* Whether to believe the position: the percent falls only when its source is another, or begins anew. */
static bool believes(struct progress *p, const struct position_now *now)
{
    const bool same = now->source == p->source && now->total_steps == p->total_steps;

    p->falls = same && now->percent < p->percent ? p->falls + 1 : 0;
    return p->falls == 0 || p->falls >= FALLS;
}

static void take_position(struct progress *p, const struct position_now *now, int64_t now_ms)
{
    if (!believes(p, now))
        return;
    const bool anew = isnan(p->percent) || now->source != p->source || !(now->percent >= p->percent);
    p->falls = 0;
    p->source = now->source;
    p->step = now->step;
    p->total_steps = now->total_steps;
    p->epoch = now->epoch;
    p->total_epochs = now->total_epochs;
    p->percent = now->percent;
    if (anew)
        start_estimate(p, now_ms);
    else
        estimate(p, now_ms);
}

void progress_take(struct progress *p, const struct progress_seen *s, bool from_file, int64_t now_ms,
                   int64_t wall_ms)
{
    if (p->from_file && !from_file)
        return;
    p->from_file = from_file;
    p->wall_ms = wall_ms;
    p->loss = isfinite(s->loss) ? s->loss : p->loss;
    p->samples_per_second = isfinite(s->samples_per_second) ? s->samples_per_second : p->samples_per_second;
    if (!from_file)
        position_take(&p->position, s);
    const struct position_now now = from_file ? position_of_file(s) : position_now(&p->position);
    take_position(p, &now, now_ms);
}
