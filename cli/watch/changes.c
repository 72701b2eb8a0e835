/* changes.c - decide which changes of a job get a line, and write it. */
#include "cli/watch/changes.h"

#include "cli/span.h"
#include "common/clock.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static bool progress_is_news(const struct board_job *j)
{
    const struct jobprogress *p = &j->progress;

    if (j->phase != JOB_RUNNING || !p->time_ms || (p->percent < 0 && p->step < 0) ||
        p->time_ms == j->printed.progress_ms)
        return false;
    return !j->printed.progress_ms || p->time_ms - j->printed.progress_ms >= CHANGES_MS ||
           p->time_ms < j->printed.progress_ms ||
           (p->percent >= 0 && (p->percent < j->printed.percent ||
                                p->percent / CHANGES_POINTS > j->printed.percent / CHANGES_POINTS));
}

static void begin_line(const struct board_job *j, bool with_ns, int64_t now_ms, struct buf *out)
{
    char time[CLOCK_RFC3339_BYTES];

    clock_rfc3339(now_ms, false, time);
    buf_printf(out, NULL, "%s %s%s%s: ", time, with_ns ? j->ns : "", with_ns ? "/" : "", j->name);
}

static void add_progress(const struct board_job *j, struct buf *out)
{
    const struct jobprogress *p = &j->progress;
    char left[SPAN_BYTES];

    if (p->percent >= 0)
        buf_printf(out, NULL, ", %lld%%", (long long)p->percent);
    if (p->step >= 0)
        buf_printf(out, NULL, ", step %lld", (long long)p->step);
    if (p->step >= 0 && p->total_steps > 0)
        buf_printf(out, NULL, "/%lld", (long long)p->total_steps);
    if (p->eta_s >= 0)
        buf_printf(out, NULL, ", %s left", span_text(p->eta_s, false, left));
    if (isfinite(p->loss))
        buf_printf(out, NULL, ", loss %.4g", p->loss);
}

static void write_line(const struct board_job *j, bool with_ns, bool progress, int64_t now_ms,
                       struct buf *out)
{
    char span[SPAN_BYTES];

    begin_line(j, with_ns, now_ms, out);
    buf_puts(out, j->phase == JOB_NONE ? "no status yet" : job_phase_name(j->phase), NULL);
    if (j->phase != JOB_RUNNING && j->reason[0])
        buf_printf(out, NULL, " (%s)", j->reason);
    if (j->phase == JOB_RUNNING && j->ready[0])
        buf_printf(out, NULL, ", %s pods", j->ready);
    if (progress)
        add_progress(j, out);
    if (j->restarts)
        buf_printf(out, NULL, ", restarts %d", (int)j->restarts);
    if (j->completion_ms && j->created_ms && (j->phase == JOB_SUCCEEDED || j->phase == JOB_FAILED))
        buf_printf(out, NULL, ", after %s",
                   span_text((j->completion_ms - j->created_ms) / 1000, false, span));
    if (j->failure[0] && (j->phase == JOB_FAILED || j->restarts > j->printed.restarts))
        buf_printf(out, NULL, "; %s", j->failure);
    buf_puts(out, "\n", NULL);
}

void changes_of(struct board_job *j, bool with_ns, int64_t now_ms, struct buf *out)
{
    const bool progress = progress_is_news(j);
    char reason[BOARD_REASON_BYTES];

    /* Its first word counts. A running job's changes with each pod that starts. */
    snprintf(reason, sizeof(reason), "%.*s", j->phase == JOB_RUNNING ? 0 : (int)strcspn(j->reason, " :"),
             j->reason);
    if (j->printed.begun && !progress && j->phase == j->printed.phase && j->restarts == j->printed.restarts &&
        !strcmp(reason, j->printed.reason))
        return;
    write_line(j, with_ns, progress, now_ms, out);
    j->printed.begun = true;
    j->printed.phase = j->phase;
    j->printed.restarts = j->restarts;
    memcpy(j->printed.reason, reason, sizeof(reason));
    if (progress) {
        j->printed.percent = j->progress.percent;
        j->printed.progress_ms = j->progress.time_ms;
    }
}

void changes_deleted(const struct board_job *j, bool with_ns, int64_t now_ms, struct buf *out)
{
    begin_line(j, with_ns, now_ms, out);
    buf_puts(out, "deleted\n", NULL);
}
