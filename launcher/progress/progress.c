/* progress.c - make steps, percent and time left of what was seen of a training. */
#include "launcher/progress/progress.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

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
                                  .steps_per_second = NAN,
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
}

void progress_take(struct progress *p, const struct progress_seen *s, bool from_file, int64_t now_ms,
                   int64_t wall_ms)
{
    (void)now_ms;
    if (s->sideline || (p->from_file && !from_file))
        return;
    p->from_file = from_file;
    p->wall_ms = wall_ms;
    p->step = s->step >= 0 ? s->step : p->step;
    p->loss = isfinite(s->loss) ? s->loss : p->loss;
    p->percent = isfinite(s->percent) ? s->percent : p->percent;
}

const char *progress_summary(const struct progress *p, char buf[static PROGRESS_SUMMARY_BYTES])
{
    if (isfinite(p->percent))
        snprintf(buf, PROGRESS_SUMMARY_BYTES, "%d%%", (int)p->percent);
    else if (p->step >= 0)
        snprintf(buf, PROGRESS_SUMMARY_BYTES, "step %" PRId64, p->step);
    else
        buf[0] = '\0';
    return buf;
}
