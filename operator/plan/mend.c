/* mend.c - repair a status that was edited by hand or written under a wrong clock, before it is used. */
#include "operator/plan/mend.h"

enum { CLOCK_SKEW_MAX_MS = 600000 };

/* A time far ahead comes from a wrong clock, or someone wrote it: delays and deadlines that run from it would not end
 * before it. Clocks of two machines may well be a little apart. */
int64_t mend_time(const struct planner *p, int64_t ms)
{
    return ms > p->now_ms + CLOCK_SKEW_MAX_MS ? p->now_ms : ms;
}

static struct failure *mended_failures(struct planner *p, const struct failure *from, int n)
{
    struct failure *to = arena_array(p->a, (size_t)n, struct failure);

    for (int i = 0; i < n; i++) {
        to[i] = from[i];
        to[i].time_ms = mend_time(p, from[i].time_ms);
    }
    return to;
}

static void correct_times(struct planner *p)
{
    struct jobstatus *st = &p->st;

    st->start_ms = mend_time(p, st->start_ms);
    st->completion_ms = mend_time(p, st->completion_ms);
    for (int t = 0; t < COND_TYPES; t++)
        st->conditions[t].transition_ms = mend_time(p, st->conditions[t].transition_ms);
    st->failures = mended_failures(p, st->failures, st->n_failures);
    st->progress.time_ms = mend_time(p, st->progress.time_ms);
    if (st->last_failure)
        st->last_failure = mended_failures(p, st->last_failure, 1);
}

/* An end is told by phase, condition and time. Where someone took part of it away, the rest brings it back: no job ends
 * twice. */
static void restore_end(struct planner *p)
{
    struct jobstatus *st = &p->st;

    if (!jobstatus_finished(st) && st->conditions[COND_FAILED].state == COND_TRUE)
        st->phase = JOB_FAILED;
    else if (!jobstatus_finished(st) && st->conditions[COND_COMPLETED].state == COND_TRUE)
        st->phase = JOB_SUCCEEDED;
    if (!jobstatus_finished(st))
        return;
    if (!st->completion_ms)
        st->completion_ms = p->now_ms;
    bool good = st->phase == JOB_SUCCEEDED;
    const char *reason = p->job->status.reason ? p->job->status.reason : "Restored";
    if (st->conditions[COND_RUNNING].state == COND_ABSENT)
        planner_condition(p, COND_RUNNING, false, good ? "JobSucceeded" : "JobFailed", "");
    if (st->conditions[COND_COMPLETED].state == COND_ABSENT)
        planner_condition(p, COND_COMPLETED, good, good ? reason : "JobFailed", "");
    if (st->conditions[COND_FAILED].state == COND_ABSENT)
        planner_condition(p, COND_FAILED, !good, good ? "JobSucceeded" : reason, "");
}

void mend_status(struct planner *p)
{
    correct_times(p);
    restore_end(p);
}
