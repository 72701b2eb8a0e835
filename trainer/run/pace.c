/* pace.c - measure how fast a run takes its steps. */
#include "trainer/run/pace.h"

#include <math.h>

enum { EARLY_MS = 200, WINDOW_MS = 2000 };

void pace_step(struct pace *p, int64_t now_ms, int64_t samples_per_step, struct pace_view *v)
{
    if (!p->begun)
        *p = (struct pace){true, now_ms, v->done, now_ms, v->done, 0};
    v->samples_per_s = v->left_s = NAN;
    if (now_ms - p->first_ms < EARLY_MS || v->done <= p->first_done)
        return;
    if (p->rate <= 0 || now_ms - p->window_ms >= WINDOW_MS) {
        p->rate = (double)(v->done - p->window_done) / (double)(now_ms - p->window_ms);
        p->window_ms = now_ms;
        p->window_done = v->done;
    }
    v->samples_per_s = p->rate * (double)samples_per_step * 1000;
    v->left_s = (double)(v->total > v->done ? v->total - v->done : 0) * (double)(now_ms - p->first_ms) /
                1000 / (double)(v->done - p->first_done);
}
