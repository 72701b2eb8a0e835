/* schedule.c - compute the learning rate of a step or an epoch from the schedule. */
#include "trainer/model/optim.h"

#include <math.h>

enum { PRODUCTS_MAX = 1024 };

/* lr * gamma * gamma ..., `times` factors, rounded after each as torch does. */
static double decayed(double lr, double gamma, int64_t times)
{
    int64_t one_by_one = times < PRODUCTS_MAX ? times : PRODUCTS_MAX;

    for (int64_t i = 0; i < one_by_one; i++)
        lr *= gamma;
    return times > one_by_one ? lr * pow(gamma, (double)(times - one_by_one)) : lr;
}

/* At a milestone torch multiplies by gamma^k, where k is how often the milestone is listed. */
static double past_milestones(const struct schedule_spec *s, double lr, int64_t t)
{
    for (int i = 0; i < s->milestones; i++)
        if (s->milestone[i] <= t)
            lr *= s->gamma;
    return lr;
}

/* Half a cosine wave. After its end the rate stays at min_lr; torch's CosineAnnealingLR rises again. */
static double cosine(const struct schedule_spec *s, double lr, double t)
{
    double total = (double)(s->total > 0 ? s->total : 1);

    if (t >= total)
        return s->min_lr;
    return s->min_lr + (lr - s->min_lr) * (1 + cos(acos(-1.0) * t / total)) / 2;
}

struct schedule_spec optim_schedule(const struct schedule_spec *s, int64_t epochs, int64_t steps)
{
    struct schedule_spec run = *s;
    int64_t all = s->per_step ? epochs * steps : epochs;

    if (!run.total)
        run.total = all > run.warmup ? all - run.warmup : 1;
    return run;
}

static double warming(const struct schedule_spec *s, double lr, double t)
{
    double part = (s->warmup_last_full ? t + 1 : t) / (double)s->warmup;

    if (part > 1) /* in the last step of the warm-up */
        return lr;
    return lr * (s->warmup_from + (1 - s->warmup_from) * part);
}

double optim_rate(const struct optimizer_spec *o, const struct schedule_spec *s, int world, int64_t epoch,
                  double step)
{
    double lr = o->lr_times_world ? o->lr * world : o->lr;
    double time = s->per_step ? step : (double)(epoch - 1);

    if (time < (double)s->warmup)
        return warming(s, lr, time);
    time -= (double)s->warmup;
    const int64_t t = (int64_t)time; /* whole steps */
    switch (s->type) {
    case SCHEDULE_CONSTANT:
        break;
    case SCHEDULE_STEP:
        return decayed(lr, s->gamma, t / s->every);
    case SCHEDULE_MULTI_STEP:
        return past_milestones(s, lr, t);
    case SCHEDULE_COSINE:
        return cosine(s, lr, time);
    }
    return lr;
}
