/* plan.c - one planning pass: which state the job is in, and the order of the actions. */
#include "operator/plan/plan.h"

#include "operator/plan/cleanup.h"
#include "operator/plan/forcedelete.h"
#include "operator/plan/frozen.h"
#include "operator/plan/ignored.h"
#include "operator/plan/lifecycle.h"
#include "operator/plan/observe.h"
#include "operator/plan/planner.h"
#include "operator/plan/progress.h"
#include "operator/plan/replica.h"
#include "operator/plan/status.h"
#include "operator/plan/tensorboard.h"
#include "operator/plan/timing.h"

#include <string.h>

static void append(struct planner *p, struct action_list *to, const struct action_list *from)
{
    for (int i = 0; i < from->n; i++) {
        struct action *act = planner_add(p, to, from->items[i].kind);
        *act = from->items[i];
    }
}

static void note_transitions(const struct planner *p, struct plan *out)
{
    const struct jobstatus *old = &p->job->status;

    out->started = old->phase == JOB_NONE;
    out->succeeded = p->st.phase == JOB_SUCCEEDED && old->phase != JOB_SUCCEEDED;
    out->failed = p->st.phase == JOB_FAILED && old->phase != JOB_FAILED;
    out->restarted = jobstatus_counted(&p->st) > jobstatus_counted(old) && !jobstatus_finished(&p->st);
}

/* Of a job that nobody ever wrote a status for, nor made a pod of. */
static bool may_begin_with_pods(const struct planner *p)
{
    return p->in->job_is_new && p->st.phase == JOB_NONE && p->st.attempt == 0 && p->in->n_pods == 0 &&
           p->in->problem.kind == PROBLEM_NONE;
}

/* What shows how the job stands, and no more. */
static bool may_wait(const struct planner *p, const struct action_list *all)
{
    for (int i = 0; i < all->n; i++)
        if (all->items[i].kind != ACTION_STATUS && all->items[i].kind != ACTION_EVENT)
            return false;
    return p->st.attempt == p->job->status.attempt;
}

/* The status first: nothing else happens before it is written that a count depends on. */
static void assemble(struct planner *p, struct plan *out)
{
    struct action_list all = {0};
    struct action status;
    bool decided = p->st.attempt != p->job->status.attempt || jobstatus_finished(&p->st);
    const struct action_list *alone = NULL;

    if (p->checks.n > 0 && !decided)
        alone = &p->checks; /* The picture has a hole: nothing is said or done before the answer is there. */
    else if (p->pods_first && p->creates.n > 0)
        alone = &p->creates;
    if (alone) {
        *out = (struct plan){.actions = alone->items, .n_actions = alone->n, .requeue_ms = p->requeue_ms};
        out->pods_first = alone == &p->creates;
        if (out->pods_first)
            timing_note(p, out);
        return;
    }
    status_announce(p);
    if (status_patch(p, &status)) {
        *planner_add(p, &all, ACTION_STATUS) = status;
        append(p, &all, &p->events);
    }
    bool others_first = all.n == 0 && p->others_follow && p->creates.n > 0;
    append(p, &all, &p->deletes);
    append(p, &all, &p->creates);
    append(p, &all, &p->tensorboard);
    *out = (struct plan){.actions = all.items, .n_actions = all.n, .requeue_ms = p->requeue_ms};
    out->pods_first = others_first;
    out->may_wait = may_wait(p, &all);
    out->creates_wait = p->creates_wait;
    out->progressed = p->progressed;
    out->progress_only = p->progress_only;
    out->slow_rank = p->slow_rank;
    note_transitions(p, out);
    timing_note(p, out);
}

static int highest_attempt(const struct plan_input *in)
{
    int highest = -1;

    for (int i = 0; i < in->n_pods; i++)
        if (in->pods[i]->attempt > highest)
            highest = in->pods[i]->attempt;
    return highest;
}

/* A pod newer than the status: the cached job is old, or its status was lost. True: stop here and read it
 * again. */
static bool status_is_stale(struct planner *p)
{
    int highest = highest_attempt(p->in);

    if (highest < p->st.attempt || (highest == p->st.attempt && !replica_status_is_behind(p)))
        return false;
    if (p->st.phase != JOB_NONE && !p->in->job_is_live)
        return true;
    p->st.attempt = highest;
    return false;
}

static void plan_invalid(struct planner *p)
{
    const char *message = p->job->spec_error;

    if (jobstatus_finished(&p->st)) {
        p->st.reason = frozen_final_reason(&p->job->status);
        cleanup_finished(p);
        return;
    }
    status_init_conditions(p);
    if (p->st.phase == JOB_NONE)
        p->st.phase = JOB_PENDING;
    planner_reason(p, "InvalidSpec", message);
    planner_condition(p, COND_INVALID_SPEC, true, "InvalidSpec", message);
}

static void plan_valid(struct planner *p)
{
    planner_fill_slots(p);
    status_init_conditions(p);
    if (jobstatus_finished(&p->st)) {
        p->st.reason = frozen_final_reason(&p->job->status);
        ignored_tell_change(p, p->st.attempt);
        cleanup_finished(p);
    } else {
        int attempt = p->st.attempt;
        ignored_tell(p);
        if (p->spec->paused)
            lifecycle_pause(p);
        else
            lifecycle_run(p);
        if (!jobstatus_finished(&p->st))
            ignored_tell_change(p, attempt);
    }
    forcedelete_plan(p);
    observe_job(p);
    progress_observe(p);
    tensorboard_plan(p);
}

void plan_trainjob(const struct plan_input *in, struct arena *a, struct plan *out)
{
    struct planner p = {.in = in, .job = in->job, .spec = &in->job->spec, .a = a, .now_ms = in->now_ms};

    *out = (struct plan){.seen = in->seen};
    if (in->job->deleting || !planner_is_ours(in->job))
        return;
    if (in->unreadable) {
        frozen_plan(&p, out);
        return;
    }
    status_begin(&p);
    if (status_is_stale(&p)) {
        out->refetch = true;
        return;
    }
    p.pods_first = may_begin_with_pods(&p);
    if (in->job->spec_error)
        plan_invalid(&p);
    else
        plan_valid(&p);
    assemble(&p, out);
    out->seen = p.seen;
}
