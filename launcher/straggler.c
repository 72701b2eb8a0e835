/* straggler.c - windows of steps, and the judgement over the last ones. */
#include "launcher/straggler.h"

#include "common/cleanup.h"

#include <stdlib.h>
#include <string.h>

void straggler_init(struct straggler *s, int n, struct arena *a)
{
    *s = (struct straggler){.n = n, .rank = -1, .tell_ms = INT64_MIN};
    s->now = arena_array(a, (size_t)n, struct straggler_count);
    s->from = arena_array(a, (size_t)n, struct straggler_count);
    s->part = arena_array(a, (size_t)n, struct steps);
    straggler_begin(s, 0);
}

void straggler_begin(struct straggler *s, int64_t first_rank)
{
    s->first_rank = first_rank;
    s->rank = -1;
    s->ratio = 0;
    s->windows = 0;
    memset(s->from, 0, (size_t)s->n * sizeof(*s->from));
    for (int i = 0; i < STRAGGLER_WINDOWS; i++)
        s->last[i].rank = -1;
}

/* -1: not a time of so many steps. */
static int64_t mean(uint64_t from, uint64_t now, uint64_t steps)
{
    return now >= from && (now - from) / steps <= STEPS_US_MAX ? (int64_t)((now - from) / steps) : -1;
}

/* 1: part of a window; 0: not yet; -1: counts that nobody counts like that. */
static int measure_rank(const struct straggler_count *from, const struct straggler_count *now,
                        struct steps *ret)
{
    if (now->step < from->step)
        return -1;
    if (now->step - from->step < STRAGGLER_STEPS)
        return 0;
    const uint64_t steps = now->step - from->step;
    const int64_t own = mean(from->own_us, now->own_us, steps),
                  wait = mean(from->wait_us, now->wait_us, steps);
    *ret = (struct steps){.ranks = 1, .median_us = own, .slow_us = own, .wait_us = wait};
    return own < 0 || wait < 0 ? -1 : 1;
}

bool straggler_measure(struct straggler *s)
{
    bool sound = true;

    for (int i = 0; i < s->n; i++) {
        const int rc = measure_rank(&s->from[i], &s->now[i], &s->part[i]);
        if (!rc)
            return false;
        sound = sound && rc > 0;
        s->part[i].slow_rank = s->first_rank + i;
    }
    memcpy(s->from, s->now, (size_t)s->n * sizeof(*s->from));
    if (!sound)
        return false;
    s->steps.window++;
    steps_merge(s->part, s->n, &s->steps);
    return true;
}

static int by_value(const void *x, const void *y)
{
    const double a = *(const double *)x, b = *(const double *)y;

    return (a > b) - (a < b);
}

/* How often rank `rank` was slow in the last windows, and the median of its ratios then. */
static int count(const struct straggler *s, int64_t rank, double *ret_ratio)
{
    double ratio[STRAGGLER_WINDOWS];
    int n = 0;

    for (int i = 0; i < STRAGGLER_WINDOWS; i++)
        if (s->last[i].rank == rank)
            ratio[n++] = s->last[i].ratio;
    qsort(ratio, (size_t)n, sizeof(*ratio), by_value);
    *ret_ratio = ratio[n / 2];
    return n;
}

void straggler_judge(struct straggler *s, const struct steps *run)
{
    double ratio;

    if (run->window == s->judged || run->ranks < 1)
        return;
    s->judged = run->window;
    const bool slow = steps_ratio(run) > STRAGGLER_RATIO;
    const int at = s->windows++ % STRAGGLER_WINDOWS;
    s->last[at].rank = slow ? run->slow_rank : -1;
    s->last[at].ratio = steps_ratio(run);
    s->rank = -1;
    for (int i = 0; i < STRAGGLER_WINDOWS; i++)
        if (s->last[i].rank >= 0 && count(s, s->last[i].rank, &ratio) >= STRAGGLER_MOST) {
            s->rank = s->last[i].rank;
            s->ratio = ratio;
        }
}

bool straggler_due(struct straggler *s, int64_t now_ms)
{
    if (s->rank < 0 || now_ms < s->tell_ms)
        return false;
    s->tell_ms = now_ms + STRAGGLER_TELL_MS;
    return true;
}
