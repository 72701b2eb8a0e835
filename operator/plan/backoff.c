/* backoff.c - compute how long the next attempt waits. */
#include "operator/plan/backoff.h"

#include "common/backoff.h"
#include "operator/plan/exitcode.h"

#include <string.h>

enum { FIRST_DELAY_MS = 10000, DELAY_MAX_MS = 600000, GOOD_RUN_MS = 600000 };

/* The n-th failure in a row: none, 10 s, 20 s, 40 s ... 10 min. */
static int64_t delay_ms(int in_a_row)
{
    return in_a_row <= 1 ? 0 : backoff_delay_ms(FIRST_DELAY_MS, DELAY_MAX_MS, in_a_row - 2);
}

/* Failures in a row, up to the one at `last`, are those with less than 10 min between the start of an attempt and
 * its end. The last ten are kept, and eight in a row already wait longest. Disruptions neither wait nor break the
 * row. `pod` NULL: of all pods. */
static int64_t delay_after(const struct jobstatus *st, int last, const char *pod)
{
    int64_t earlier = 0;
    int in_a_row = 0;

    for (int i = 0; i <= last; i++) {
        const struct failure *f = &st->failures[i];
        if (exitcode_is_disruption(f->reason) || (pod && (!f->pod || strcmp(f->pod, pod) != 0)))
            continue;
        bool good_run = earlier && f->time_ms - (earlier + delay_ms(in_a_row)) >= GOOD_RUN_MS;
        in_a_row = good_run ? 1 : in_a_row + 1;
        earlier = f->time_ms;
    }
    return delay_ms(in_a_row);
}

int64_t backoff_due_ms(const struct jobstatus *st)
{
    const struct failure *last = st->last_failure;

    if (!last || last->attempt != st->attempt - 1 || last->time_ms < st->start_ms ||
        exitcode_is_disruption(last->reason))
        return 0;
    return last->time_ms + delay_after(st, st->n_failures - 1, NULL);
}

int64_t backoff_slot_due_ms(const struct jobstatus *st, const char *pod)
{
    for (int i = st->n_failures - 1; i >= 0; i--) {
        const struct failure *f = &st->failures[i];
        if (f->attempt == st->attempt && f->pod && strcmp(f->pod, pod) == 0)
            return exitcode_is_disruption(f->reason) ? 0 : f->time_ms + delay_after(st, i, pod);
    }
    return 0;
}
