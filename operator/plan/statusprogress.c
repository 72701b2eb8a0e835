/* statusprogress.c - set the progress in the status, and decide when a change of it is written. */
#include "operator/plan/statusprogress.h"

#include "operator/plan/desired.h"
#include "operator/plan/planner.h"
#include "operator/plan/status.h"

#include <string.h>

/* Pod 0 of this attempt, whose launcher has rank 0. NULL: no such pod, or the job runs no torchrun. */
static const struct pod *first_pod(const struct plan_input *in)
{
    const struct trainjob_spec *spec = &in->job->spec;
    cleanup_arena struct arena a = {0};

    if (in->job->spec_error || !spec->torchrun.enabled || spec->debug.enabled)
        return NULL;
    const char *name = desired_pod_name(&a, in->job->name, spec->replica_specs[0].type, 0);
    for (int i = 0; i < in->n_pods; i++)
        if (strcmp(in->pods[i]->name, name) == 0 && in->pods[i]->attempt == in->job->status.attempt)
            return in->pods[i];
    return NULL;
}

const struct pod *progress_pod(const struct plan_input *in)
{
    const struct trainjob *job = in->job;

    if (job->status.phase != JOB_RUNNING || job->deleting || !planner_is_ours(job) || job->spec.paused)
        return NULL;
    const struct pod *pod = first_pod(in);
    return pod && pod_is_running(pod) && pod->ip[0] && !pod->host_network ? pod : NULL;
}

/* If the clock was set back, the time counts as passed. */
static bool has_passed(int64_t since_ms, int64_t ms, int64_t now_ms)
{
    return !since_ms || now_ms < since_ms || now_ms - since_ms >= ms;
}

static bool tells_slow_rank(const struct plan_progress *in, int64_t now_ms)
{
    return in->answer.slow_rank >= 0 && has_passed(in->slow_reported_ms, PROGRESS_SLOW_MS, now_ms);
}

/* Whether both come from the same observation of the launcher. */
static bool is_same_look(const struct jobprogress *a, const struct jobprogress *b)
{
    return a->time_ms == b->time_ms && a->step == b->step;
}

static bool is_worth_a_write(const struct plan_progress *in, const struct jobprogress *shown, int64_t now_ms)
{
    if (in->write_dropped && !has_passed(in->written_ms, PROGRESS_DROPPED_MS, now_ms))
        return false;
    return jobprogress_moved(shown, &in->answer.progress) ||
           (!is_same_look(shown, &in->answer.progress) &&
            has_passed(in->written_ms, PROGRESS_REFRESH_MS, now_ms));
}

bool progress_is_news(const struct plan_progress *in, const struct jobprogress *shown, int64_t now_ms)
{
    return in->answered && (tells_slow_rank(in, now_ms) ||
                            (in->answer.progress.time_ms && is_worth_a_write(in, shown, now_ms)));
}

/* The answer for the status's attempt; NULL: none, or the job had ended before this plan. */
static const struct plan_progress *answer_of(const struct planner *p)
{
    const struct plan_progress *in = p->in->progress;

    if (!in || !in->answered || jobstatus_finished(&p->job->status))
        return NULL;
    return in->attempt == p->job->status.attempt ? in : NULL;
}

static void set_progress(struct planner *p, const struct jobprogress *from)
{
    if (!from->time_ms)
        return;
    p->st.progress = *from;
    p->st.progress.time_ms = status_time(p, from->time_ms);
}

/* Use the progress in the termination message of pod 0's launcher, which is newer than any answer. */
static void take_last(struct planner *p)
{
    const struct pod *pod = first_pod(p->in);
    struct jobprogress_answer left;

    if (pod && !jobstatus_finished(&p->job->status) &&
        jobprogress_answer(sv_from(pod->training.message), p->job->uid, pod->attempt, &left) ==
            JOBPROGRESS_OK)
        set_progress(p, &left.progress);
}

void progress_observe(struct planner *p)
{
    const struct plan_progress *in = answer_of(p);
    struct jobprogress *to = &p->st.progress;

    if (in)
        set_progress(p, &in->answer.progress);
    if (p->st.phase == JOB_SUCCEEDED) {
        take_last(p);
        to->percent = to->percent >= 0 ? 100 : -1;
        to->eta_s = -1;
    }
    if (!in || jobstatus_finished(&p->st) || !tells_slow_rank(in, p->now_ms))
        return;
    planner_event_in(p, &p->creates, true, "SlowRank", "rank %d takes %.2f times the median step time",
                     in->answer.slow_rank, in->answer.slow_ratio); /* independent of the status */
    p->out->slow_rank = true;
}

bool progress_is_due(struct planner *p)
{
    const struct plan_progress *in = answer_of(p);

    if (!in || !is_worth_a_write(in, &p->job->status.progress, p->now_ms))
        return false;
    if (has_passed(in->written_ms, PROGRESS_SPACING_MS, p->now_ms))
        return true;
    planner_requeue(p, in->written_ms + PROGRESS_SPACING_MS);
    return false;
}
