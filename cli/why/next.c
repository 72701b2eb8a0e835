/* next.c - what the operator does next, from the counters and times of the job's status. */
#include "cli/why/answer.h"

#include "cli/span.h"
#include "common/clock.h"
#include "operator/plan/exitcode.h"
#include "operator/plan/restart.h"

#include <string.h>

enum { ADMISSIONS_MAX = 10 };

const char *next_span(int64_t ms, struct arena *a)
{
    return span_text(ms / 1000, true, arena_alloc(a, SPAN_BYTES));
}

static const char *when(const struct why_facts *f, int64_t due_ms, struct arena *a)
{
    char time[CLOCK_RFC3339_BYTES];

    if (due_ms <= f->now_ms)
        return "now";
    clock_rfc3339(due_ms, false, time);
    return arena_printf(a, "in %s (%s)", next_span(due_ms - f->now_ms + 999, a), time);
}

static const char *restart(const struct why_facts *f, const struct finding *g, struct arena *a)
{
    const struct jobstatus *st = &f->job->status;
    const bool alone = g->attempt == st->attempt; /* restartScope Replica */
    const int64_t due_ms = alone ? restart_slot_due_ms(st, g->pod) : restart_due_ms(st);
    const char *what = alone ? arena_printf(a, "pod %.253s is created again %s", g->pod, when(f, due_ms, a))
                             : arena_printf(a, "attempt %d begins %s", st->attempt, when(f, due_ms, a));

    if (exitcode_is_disruption(g->reason))
        return arena_printf(a, "%s. Disruptions do not count towards backoffLimit (%d so far).", what,
                            st->disruption_count);
    if (g->exit_code < 0) /* an admission */
        return arena_printf(a, "%s. Not started or refused by a node %d of %d times.", what,
                            st->admission_count, ADMISSIONS_MAX);
    return arena_printf(a, "restart %d of %d: %s.", st->backoff_count, f->job->spec.run_policy.backoff_limit,
                        what);
}

static const char *ended(const struct why_facts *f, struct arena *a)
{
    const struct jobstatus *st = &f->job->status;
    const int32_t limit = f->job->spec.run_policy.backoff_limit;

    if (st->reason && !strcmp(st->reason, "BackoffLimitExceeded"))
        return arena_printf(a, "nothing: the job has ended, all %d restarts of backoffLimit are used up.",
                            limit);
    return arena_printf(a, "nothing: the job has ended%s.",
                        st->last_failure && st->backoff_count < limit ? ", and this is not restarted" : "");
}

const char *next_of(const struct why_facts *f, const struct finding *g, const struct cause *c,
                    struct arena *a)
{
    static const char *const OF_KIND[WHY_FAILURE + 1] = {
        [WHY_REFUSED] = "tries again, at least once a minute.",
        [WHY_WAITING] = "waits: the pod continues by itself once this is fixed.",
    };
    const struct opt_i64 *deadline = &f->job->spec.run_policy.start_deadline_s;
    const char *next = c->next ? c->next : OF_KIND[g->kind];

    if (jobstatus_finished(&f->job->status))
        return ended(f, a);
    if (next && g->kind == WHY_WAITING && deadline->set && deadline->v)
        return arena_printf(a,
                            "%s After startDeadlineSeconds (%lld) it deletes the pods and tries again later.",
                            next, (long long)deadline->v);
    if (next)
        return next;
    if (g->kind == WHY_FAILURE && !g->judged)
        return "decides within 30 s: other pods of the attempt may report more.";
    return g->kind == WHY_FAILURE ? restart(f, g, a) : "nothing.";
}
