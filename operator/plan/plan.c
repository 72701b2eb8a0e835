/* plan.c - plan one job: determine its state, and order the actions. */
#include "operator/plan/plan.h"

#include "operator/plan/finish.h"
#include "operator/plan/gang.h"
#include "operator/plan/ignored.h"
#include "operator/plan/lifecycle.h"
#include "operator/plan/observe.h"
#include "operator/plan/planner.h"
#include "operator/plan/queue.h"
#include "operator/plan/status.h"
#include "operator/plan/statusprogress.h"
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

/* Whether pods may precede the first status: the job has no status and no pod, so no count exists yet. */
static bool may_begin_with_pods(const struct planner *p)
{
    return !p->job->status_tree && p->st.attempt == 0 && p->in->n_pods == 0 && !p->in->status_first &&
           p->in->problem.kind == PROBLEM_NONE && (p->in->queue.mode == QUEUE_OFF || !p->job->queue.name);
}

/* Whether the plan only reports the job's state. */
static bool may_wait(const struct planner *p, const struct action_list *all)
{
    for (int i = 0; i < all->n; i++)
        if (all->items[i].kind != ACTION_STATUS && all->items[i].kind != ACTION_EVENT)
            return false;
    return p->st.attempt == p->job->status.attempt;
}

/* The status comes first: actions that depend on a count follow its write. */
static void assemble(struct planner *p, struct plan *out)
{
    struct action_list all = {0};
    struct action status;

    if (p->pods_first && p->creates.n > 0) {
        *out = (struct plan){.actions = p->creates.items,
                             .n_actions = p->creates.n,
                             .requeue_ms = p->requeue_ms,
                             .pods_first = true};
        timing_note(p, out);
        return;
    }
    status_announce(p);
    if (status_patch(p, &status)) {
        *planner_add(p, &all, ACTION_STATUS) = status;
        append(p, &all, &p->events);
    }
    bool others_first = all.n == 0 && p->others_follow && p->creates.n > 0;
    append(p, &all, &p->gangs);
    append(p, &all, &p->deletes);
    append(p, &all, &p->workloads);
    append(p, &all, &p->creates);
    append(p, &all, &p->tensorboard);
    append(p, &all, &p->ready);
    *out = (struct plan){.actions = all.items, .n_actions = all.n, .requeue_ms = p->requeue_ms};
    out->pods_first = others_first;
    out->may_wait = may_wait(p, &all);
    out->creates_wait = p->creates_wait;
    out->queued = p->queue.pending;
    out->progressed = p->progressed;
    out->progress_only = p->progress_only;
    out->slow_rank = p->slow_rank;
    note_transitions(p, out);
    timing_note(p, out);
}

/* The status of an attempt is written before its pods are created. So if the status has a lower attempt than
 * a pod, the status was edited: use the pod's label. */
static void believe_labels(struct planner *p)
{
    for (int i = 0; i < p->in->n_pods; i++)
        if (p->in->pods[i]->attempt > p->st.attempt)
            p->st.attempt = p->in->pods[i]->attempt;
}

static const char UNREADABLE[] = "Unreadable";

/* The job or a child cannot be read: report that once, if the job has not finished, and do nothing else. */
static void plan_unreadable(struct planner *p, struct plan *out)
{
    const struct jobstatus *st = &p->job->status;
    struct action_list all = {0};

    /* unreadable_reported: the reason in the status may be unreadable in a job that is too long. */
    if (p->in->unreadable_reported || jobstatus_finished(st) ||
        (st->reason && strcmp(st->reason, UNREADABLE) == 0))
        return;
    cleanup_json cJSON *diff = cJSON_CreateObject();
    cJSON_AddStringToObject(diff, "reason", UNREADABLE);
    planner_event(p, true, UNREADABLE,
                  "%s; running pods continue, but nothing is created or deleted for this job until that "
                  "object is changed or deleted",
                  p->in->unreadable);
    *planner_add(p, &all, ACTION_STATUS) = status_action(p, diff);
    append(p, &all, &p->events);
    *out = (struct plan){.actions = all.items, .n_actions = all.n, .unreadable = true};
}

/* Of a finished job: status.reason, or the reason that UNREADABLE replaced. */
static const char *final_reason(const struct jobstatus *st)
{
    bool frozen = st->reason && strcmp(st->reason, UNREADABLE) == 0;

    return frozen ? st->conditions[st->phase == JOB_FAILED ? COND_FAILED : COND_COMPLETED].reason
                  : st->reason;
}

/* The last pod of an invalid job has ended. What that means is judged when the spec is valid. */
static void end_run(struct planner *p, const char *message)
{
    p->st.phase = JOB_PENDING;
    planner_condition(p, COND_RUNNING, false, "InvalidSpec", message);
}

static void plan_invalid(struct planner *p)
{
    const char *message = p->job->spec_error;

    if (jobstatus_finished(&p->st)) {
        p->st.reason = final_reason(&p->job->status);
        finish_clean_up(p);
        queue_begin(p);
        queue_act(p);
        return;
    }
    status_init_conditions(p);
    if (p->st.phase == JOB_NONE)
        p->st.phase = JOB_PENDING;
    planner_reason(p, "InvalidSpec", message);
    planner_condition(p, COND_INVALID_SPEC, true, "InvalidSpec", message);
    queue_begin(p);
    if (queue_ends_pods(p)) /* others wait for its quota */
        lifecycle_wait(p);
    else if (!queue_is_used(p) && p->st.phase == JOB_RUNNING)
        end_run(p, message);
    queue_act(p);
}

static void plan_valid(struct planner *p)
{
    queue_begin(p);
    planner_fill_slots(p);
    status_init_conditions(p);
    if (jobstatus_finished(&p->st)) {
        p->st.reason = final_reason(&p->job->status);
        ignored_report_change(p, p->st.attempt);
        finish_clean_up(p);
    } else {
        int attempt = p->st.attempt;
        ignored_report(p);
        if (p->spec->paused)
            lifecycle_pause(p);
        else
            lifecycle_run(p);
        if (!jobstatus_finished(&p->st))
            ignored_report_change(p, attempt);
    }
    gang_delete(p);
    finish_force_deletes(p);
    observe_job(p);
    progress_observe(p);
    tensorboard_plan(p);
    queue_act(p);
}

/* Nothing is reported: MultiKueue replaces the whole status. */
static void plan_remote(struct planner *p, struct plan *out)
{
    struct action_list all = {0};

    queue_begin(p);
    queue_act(p);
    queue_end(p);
    append(p, &all, &p->workloads);
    append(p, &all, &p->ready);
    *out = (struct plan){.actions = all.items, .n_actions = all.n, .requeue_ms = p->requeue_ms};
    out->seen = p->seen;
}

void plan_trainjob(const struct plan_input *in, struct arena *a, struct plan *out)
{
    struct planner p = {.in = in, .job = in->job, .spec = &in->job->spec, .a = a, .now_ms = in->now_ms};

    *out = (struct plan){.seen = in->seen};
    p.queue.remote = planner_is_remote(in->job);
    if (in->job->deleting || !(p.queue.remote || planner_is_ours(in->job)) ||
        (p.queue.remote && in->unreadable))
        return;
    if (in->unreadable) {
        plan_unreadable(&p, out);
        return;
    }
    status_begin(&p);
    if (p.queue.remote) {
        plan_remote(&p, out);
        return;
    }
    believe_labels(&p);
    p.pods_first = may_begin_with_pods(&p);
    if (in->job->spec_error)
        plan_invalid(&p);
    else
        plan_valid(&p);
    queue_end(&p);
    assemble(&p, out);
    out->seen = p.seen;
}
