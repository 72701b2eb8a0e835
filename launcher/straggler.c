/* straggler.c - measure windows of steps, and find the straggler over the last ones. */
#include "launcher/straggler.h"

#include <stdlib.h>
#include <string.h>

void straggler_init(struct straggler *s, int n, struct arena *a)
{
    *s = (struct straggler){.n = n, .rank = -1, .report_ms = INT64_MIN};
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
}

/* The mean time per step; -1: not plausible. */
static int64_t mean(uint64_t from, uint64_t now, uint64_t steps)
{
    return now >= from && (now - from) / steps <= STEPS_US_MAX ? (int64_t)((now - from) / steps) : -1;
}

/* 1: the rank has finished the window; 0: not yet; -1: implausible counters. */
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

bool straggler_measure(struct straggler *s, const struct rank_slot *slots)
{
    bool sound = true;

    for (int i = 0; i < s->n; i++)
        s->now[i] = (struct straggler_count){
            .step = atomic_load_explicit(&slots[i].step, memory_order_relaxed),
            .own_us = atomic_load_explicit(&slots[i].step_us, memory_order_relaxed),
            .wait_us = atomic_load_explicit(&slots[i].wait_us, memory_order_relaxed)};
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

/* The rank that was the slowest in STRAGGLER_MOST of the last windows; -1: none. *ret_ratio: the median of
 * their ratios. */
static int64_t slowest(const struct straggler *s, double *ret_ratio)
{
    double ratio[STRAGGLER_WINDOWS];
    int64_t most = -1;

    for (int i = 0; i < STRAGGLER_WINDOWS; i++) {
        int n = 0;
        for (int k = 0; k < STRAGGLER_WINDOWS; k++)
            n += s->last[k].rank == s->last[i].rank;
        most = n >= STRAGGLER_MOST ? s->last[i].rank : most;
        ratio[i] = s->last[i].ratio;
    }
    qsort(ratio, STRAGGLER_WINDOWS, sizeof(*ratio), by_value);
    *ret_ratio = ratio[STRAGGLER_WINDOWS / 2];
    return most;
}

void straggler_judge(struct straggler *s, const struct steps *run)
{
    if (run->window == s->judged || run->ranks < 1)
        return;
    s->judged = run->window;
    const int at = s->windows++ % STRAGGLER_WINDOWS;
    s->last[at].rank = run->slow_rank;
    s->last[at].ratio = steps_ratio(run);
    const int64_t rank = s->windows < STRAGGLER_WINDOWS ? -1 : slowest(s, &s->ratio);
    s->rank = s->ratio > STRAGGLER_RATIO ? rank : -1;
}

bool straggler_due(struct straggler *s, int64_t now_ms)
{
    if (s->rank < 0 || now_ms < s->report_ms)
        return false;
    s->report_ms = now_ms + STRAGGLER_REPORT_MS;
    return true;
}
