/* plan.c - plan one job: determine its state, and order the actions. */
#include "operator/plan/plan.h"
#include "operator/plan/finish.h"
#include "operator/plan/gang.h"
#include "operator/plan/lifecycle.h"
#include "operator/plan/observe.h"
#include "operator/plan/planner.h"
#include "operator/plan/queue.h"
#include "operator/plan/queuewrite.h"
#include "operator/plan/status.h"
#include "operator/plan/statusprogress.h"
#include "operator/plan/tensorboard.h"

#include <string.h>

/* ---- the table of fields that are accepted and have no effect */

/* The fields ignored for one reason: the path of the first, and their number. */
struct found {
    const char *first;
    int n;
};

static void note(struct found *f, const char *path)
{
    if (f->n++ == 0)
        f->first = path;
}

static void report(struct planner *p, const struct found *f, const char *why)
{
    if (f->n == 1)
        planner_event(p, true, "Ignored", "spec.%s: %s", f->first, why);
    else if (f->n > 1)
        planner_event(p, true, "Ignored", "spec.%s and %d more: %s", f->first, f->n - 1, why);
}

static void find_command(struct planner *p, int type, const cJSON *pod_spec, struct found *ret)
{
    const cJSON *training = trainjob_training_container(pod_spec);
    const cJSON *c;
    int i = 0;

    cJSON_ArrayForEach(c, json_child(pod_spec, "containers"))
    {
        if (c == training && cJSON_GetArraySize(json_child(c, "command")) > 0)
            note(ret, arena_printf(p->a, "replicaSpecs[%d].template.spec.containers[%d].command", type, i));
        i++;
    }
}

/* Report a changed template that has no effect now: the job has ended, or `attempt` continues with the old
 * one. */
static void ignored_report_change(struct planner *p, int attempt)
{
    int64_t reported = p->job->status.observed_generation;

    /* The job has ended and its pods are gone: whether its template changed is unknown. */
    bool unknown = p->in->n_pods == 0 && jobstatus_finished(&p->st);
    if (reported == 0 || reported >= p->job->generation || p->st.attempt != attempt ||
        !(unknown || planner_has_other_template(p)))
        return;
    if (jobstatus_finished(&p->st))
        planner_event(p, true, "Ignored",
                      "the job has ended: a change of its pods' template has no effect; create another job, "
                      "or delete this one and "
                      "apply it again");
    else if (!p->spec->paused && (p->st.ran_attempt == attempt || planner_gang_runs(p)))
        planner_event(p, false, "TemplateWaits",
                      "attempt %d continues; the changed template takes effect with the next attempt",
                      attempt);
}

/* Fields for gang schedulers that this operator's does not have. */
static void report_scheduling(struct planner *p)
{
    enum gang_scheduler is = p->in->gangs.scheduler;
    const struct scheduling *s = &p->spec->scheduling;
    struct found fields = {0};

    if (s->min_available && is == GANG_NONE)
        note(&fields, "runPolicy.schedulingPolicy.minAvailable");
    if (s->queue && is != GANG_VOLCANO)
        note(&fields, s->t9k_queue ? "scheduler.t9kScheduler.queue" : "runPolicy.schedulingPolicy.queue");
    if (s->timeout_s.set && is != GANG_COSCHEDULING)
        note(&fields, "runPolicy.schedulingPolicy.scheduleTimeoutSeconds");
    if (s->has_priority)
        note(&fields, "scheduler.t9kScheduler.priority");
    report(p, &fields,
           arena_printf(p->a, "no effect with the operator's --gang-scheduler=%s", gang_schedulers[is]));
}

/* Add the events, in the first plan of each generation only. */
static void ignored_report(struct planner *p)
{
    const struct trainjob_spec *spec = p->spec;
    bool torchrun = spec->torchrun.enabled && !spec->debug.enabled;
    struct found commands = {0};
    struct found policies = {0};
    struct found names = {0};

    if (p->job->status.observed_generation >= p->job->generation)
        return;
    for (int i = 0; i < spec->n_replica_specs; i++) {
        const cJSON *pod_spec = json_child(spec->replica_specs[i].template, "spec");
        const char *policy = json_str(pod_spec, "restartPolicy");
        if (torchrun)
            find_command(p, i, pod_spec, &commands);
        if (json_str(pod_spec, "hostname"))
            note(&names, arena_printf(p->a, "replicaSpecs[%d].template.spec.hostname", i));
        if (json_str(pod_spec, "subdomain"))
            note(&names, arena_printf(p->a, "replicaSpecs[%d].template.spec.subdomain", i));
        if (policy && strcmp(policy, "Never") != 0)
            note(&policies, arena_printf(p->a, "replicaSpecs[%d].template.spec.restartPolicy", i));
    }
    for (int i = 0; i < spec->resume.n && torchrun; i++)
        if (spec->resume.items[i].n_command > 0)
            note(&commands, arena_printf(p->a, "runMode.pause.resumeSpecs[%d].command", i));
    report(p, &commands,
           "torchrun is enabled and runs instead: put the training program and its arguments into args");
    report(p, &policies, "pods are created with Never: set replicaSpecs[].restartPolicy instead");
    report_scheduling(p);
    if (p->job->queue.bad_max_time)
        planner_event(p, true, "Ignored",
                      LABEL_QUEUE_MAX_TIME ": expected seconds from 1 to %d, got \"%.63s\"", INT32_MAX,
                      p->job->queue.bad_max_time);
    report(p, &names, "the pods find each other by their own names and the job's Service");
    if (spec->unknown)
        planner_event(p, true, "Ignored", "%s; the job ran without it, and continues without it",
                      spec->unknown);
}

/* ---- the waits of users: for the first pod, for all pods to run, and to run again */

/* Waiting begins with the job's creation, or when a job that was created suspended is first resumed. */
static int64_t wanted_since(const struct planner *p)
{
    const struct condition *paused = &p->st.conditions[COND_PAUSED];

    if (paused->state == COND_FALSE && paused->reason && strcmp(paused->reason, "Started") == 0)
        return paused->transition_ms;
    return p->job->created_ms;
}

static bool had_pods(const struct planner *p)
{
    const struct jobstatus *old = &p->job->status;

    for (int t = 0; t < old->n_tasks; t++)
        for (int i = 0; i < old->tasks[t].n_replicas; i++)
            if (old->tasks[t].replicas[i].uid)
                return true;
    return p->in->n_pods > 0 || p->st.attempt > 0;
}

/* A change from Unknown is not a start: the pods may have run all the time. */
static bool begins_to_run(const struct planner *p)
{
    enum job_phase old = p->job->status.phase;

    return p->st.phase == JOB_RUNNING && old != JOB_RUNNING && old != JOB_UNKNOWN;
}

/* Set out->waits from the old status, the new one and the plan's actions. */
static void timing_note(const struct planner *p)
{
    struct plan *out = p->out;
    const struct failure *last = p->st.last_failure;
    bool failed = p->job->status.conditions[COND_REPLICA_FAILURE].state == COND_TRUE;

    if (!had_pods(p) && planner_creates(out->actions, out->n_actions, CHILD_POD))
        out->waits.first_pod_ms = wanted_since(p);
    if (begins_to_run(p) && failed && last && last->time_ms >= p->st.start_ms)
        out->waits.running_again_ms = last->time_ms;
    else if (begins_to_run(p) && p->st.attempt == 0 && !last)
        out->waits.running_ms = wanted_since(p);
}

/* ---- the plan */

static void append(struct planner *p, struct action_list *to, const struct action_list *from)
{
    for (int i = 0; i < from->n; i++)
        *planner_add(p, to, from->items[i].kind) = from->items[i];
}

static void set_actions(struct plan *out, const struct action_list *all)
{
    out->actions = all->items;
    out->n_actions = all->n;
}

static void note_transitions(const struct planner *p)
{
    const struct jobstatus *old = &p->job->status;
    struct plan *out = p->out;

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
static void assemble(struct planner *p)
{
    struct action_list all = {0};
    struct action status;

    if (p->pods_first && p->creates.n > 0) {
        set_actions(p->out, &p->creates);
        p->out->pods_first = true;
        timing_note(p);
        return;
    }
    status_announce(p);
    if (status_patch(p, &status)) {
        *planner_add(p, &all, ACTION_STATUS) = status;
        append(p, &all, &p->events);
    }
    p->out->pods_first = all.n == 0 && p->others_follow && p->creates.n > 0;
    append(p, &all, &p->gangs);
    append(p, &all, &p->deletes);
    append(p, &all, &p->workloads);
    append(p, &all, &p->creates);
    append(p, &all, &p->tensorboard);
    append(p, &all, &p->ready);
    set_actions(p->out, &all);
    p->out->may_wait = may_wait(p, &all);
    p->out->queued = p->queue.pending;
    note_transitions(p);
    timing_note(p);
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
static void plan_unreadable(struct planner *p)
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
    set_actions(p->out, &all);
    p->out->unreadable = true;
}

/* Of a finished job: status.reason, or the reason that UNREADABLE replaced. */
static const char *final_reason(const struct jobstatus *st)
{
    bool frozen = st->reason && strcmp(st->reason, UNREADABLE) == 0;

    return frozen ? st->conditions[st->phase == JOB_FAILED ? COND_FAILED : COND_COMPLETED].reason
                  : st->reason;
}

/* An invalid spec has no slots: the number of those in `ready` stays. */
static void count_pods(struct planner *p)
{
    const char *of = p->st.ready ? strchr(p->st.ready, '/') : NULL;
    int running = 0;

    p->st.replicas = 0;
    for (int i = 0; i < p->in->n_pods; i++) {
        running += pod_is_running(p->in->pods[i]);
        p->st.replicas += !pod_ended(p->in->pods[i]);
    }
    if (of)
        p->st.ready = arena_printf(p->a, "%d%s", running, of);
}

static void plan_invalid(struct planner *p)
{
    const char *message = p->job->spec_error;

    if (jobstatus_finished(&p->st)) {
        p->st.reason = final_reason(&p->job->status);
        finish_clean_up(p);
        queue_begin(p);
        queuewrite_act(p);
        return;
    }
    status_init_conditions(p);
    if (p->st.phase == JOB_NONE)
        p->st.phase = JOB_PENDING;
    planner_reason(p, "InvalidSpec", NULL, message);
    planner_condition(p, COND_INVALID_SPEC, true, "InvalidSpec", message);
    count_pods(p);
    queue_begin(p);
    if (queue_ends_pods(p)) { /* others wait for its quota */
        lifecycle_wait(p);
    } else if (!queue_is_used(p) && p->st.phase == JOB_RUNNING) {
        /* The last pod has ended. What that means is judged when the spec is valid. */
        p->st.phase = JOB_PENDING;
        planner_condition(p, COND_RUNNING, false, "InvalidSpec", message);
    }
    queuewrite_act(p);
}

static void plan_valid(struct planner *p)
{
    int attempt = p->st.attempt;
    bool over = jobstatus_finished(&p->st);

    queue_begin(p);
    planner_fill_slots(p);
    status_init_conditions(p);
    if (over) {
        p->st.reason = final_reason(&p->job->status);
    } else {
        ignored_report(p);
        if (p->st.conditions[COND_INVALID_SPEC].state == COND_TRUE)
            planner_condition(p, COND_INVALID_SPEC, false, "SpecValid", "");
        if (p->spec->paused)
            lifecycle_pause(p);
        else
            lifecycle_run(p);
    }
    if (over || !jobstatus_finished(&p->st))
        ignored_report_change(p, attempt);
    if (jobstatus_finished(&p->st))
        finish_clean_up(p);
    gang_delete(p);
    finish_force_deletes(p);
    observe_job(p);
    progress_observe(p);
    tensorboard_plan(p);
    queuewrite_act(p);
}

/* Nothing is reported: MultiKueue replaces the whole status. */
static void plan_remote(struct planner *p)
{
    struct action_list all = {0};

    queue_begin(p);
    queuewrite_act(p);
    queue_end(p);
    append(p, &all, &p->workloads);
    append(p, &all, &p->ready);
    set_actions(p->out, &all);
}

void plan_trainjob(const struct plan_input *in, struct arena *a, struct plan *out)
{
    struct planner p = {
        .in = in, .out = out, .job = in->job, .spec = &in->job->spec, .a = a, .now_ms = in->now_ms};

    *out = (struct plan){.seen = in->seen};
    p.queue.remote = planner_is_remote(in->job);
    if (in->job->deleting || !(p.queue.remote || planner_is_ours(in->job)) ||
        (p.queue.remote && in->unreadable))
        return;
    if (in->unreadable) {
        plan_unreadable(&p);
        return;
    }
    out->seen.failure_ms = out->seen.waiting_ms = out->seen.held_ms = 0;
    status_begin(&p);
    if (p.queue.remote) {
        plan_remote(&p);
        return;
    }
    believe_labels(&p);
    p.pods_first = may_begin_with_pods(&p);
    if (in->job->spec_error)
        plan_invalid(&p);
    else
        plan_valid(&p);
    queue_end(&p);
    assemble(&p);
}
