/* lifecycle.c - start, run, pause, resume: the order of questions asked of a live job. */
#include "operator/plan/lifecycle.h"

#include "operator/plan/desired_pod.h"
#include "operator/plan/desired_service.h"
#include "operator/plan/naming.h"
#include "operator/plan/restart.h"
#include "operator/plan/scale.h"
#include "operator/plan/status.h"
#include "operator/plan/success.h"

#include <string.h>

/* A pass holds what it creates: many small pods, or a few of a template as large as etcd takes. */
enum { CREATES_PER_PASS = 250, CREATES_BYTES = 4 << 20, ALWAYS_SPACING_MS = 10000 };

/* Returns the bytes of the body. */
static size_t create(struct planner *p, enum child_kind child, const char *name, cJSON *body)
{
    struct action *act = planner_add(p, &p->creates, ACTION_CREATE);

    act->child = child;
    act->name = name;
    act->body = planner_json(p, body);
    cJSON_Delete(body);
    return strlen(act->body);
}

/* One event, however many pods: an object's events are few, and others than these must get through. */
static void tell_created(struct planner *p, int n, const struct slot *first)
{
    struct action *event;

    if (!n)
        return;
    int restarts = first->seen ? first->seen->restarts : 0;
    event = planner_add(p, &p->creates, ACTION_EVENT);
    event->reason = "ReplicaCreated";
    if (n > 1)
        event->message = arena_printf(p->a, "%d pods, attempt %d", n, p->st.attempt);
    else if (restarts)
        event->message =
            arena_printf(p->a, "pod %s, attempt %d, restart %d", first->name, p->st.attempt, restarts);
    else
        event->message = arena_printf(p->a, "pod %s, attempt %d", first->name, p->st.attempt);
}

/* Pods of earlier attempts go, and so does a pod that no slot of the spec knows; of a paused job all. */
static void delete_leftovers(struct planner *p)
{
    for (int i = 0; i < p->in->n_pods; i++) {
        const struct pod *pod = p->in->pods[i];
        bool placed = false;
        if (pod->attempt == p->st.attempt && p->st.phase != JOB_PAUSED)
            for (int s = 0; s < p->n_slots && !placed; s++)
                placed = p->slots[s].pod == pod;
        if (!placed)
            planner_delete_pod(p, pod);
    }
}

/* A problem with a child of this pass's kind: say so, and leave it alone until its time. */
static bool creation_held(struct planner *p)
{
    static const char *const REASONS[] = {"", "NameConflict", "PodRefused", "InvalidSpec"};
    const struct plan_problem *problem = &p->in->problem;

    if (problem->kind == PROBLEM_NONE || strcmp(problem->name, naming_tensorboard(p->a, p->job->name)) == 0)
        return false;
    const char *message = arena_strdup(p->a, problem->message);
    planner_reason(p, REASONS[problem->kind], message);
    if (problem->kind == PROBLEM_INVALID)
        planner_condition(p, COND_INVALID_SPEC, true, "InvalidSpec", message);
    if (p->st.conditions[COND_INITIALIZED].state != COND_TRUE)
        planner_condition(p, COND_INITIALIZED, false, REASONS[problem->kind], message);
    if (problem->retry_ms <= p->now_ms)
        return false;
    planner_requeue(p, problem->retry_ms);
    return true;
}

static bool may_create(const struct slot *s)
{
    if (s->pod || s->leaving)
        return false;
    if (!s->seen || !s->seen->uid)
        return true;
    /* It was here in this attempt. Only Always brings a finished one back; of any other we ask first. */
    return s->spec->restart_policy == RESTART_ALWAYS && s->order != 0 && planner_slot_done(s);
}

static void create_missing(struct planner *p)
{
    int64_t due = restart_due_ms(&p->st);

    if (p->n_old_pods > 0)
        return; /* a Terminating pod still has its GPU and its name */
    if (due > p->now_ms) {
        planner_requeue(p, due);
        return;
    }
    if (creation_held(p))
        return;
    if (!p->in->service)
        (void)create(p, CHILD_SERVICE, naming_service(p->a, p->job->name), desired_service(p));
    int n = 0;
    size_t bytes = 0;
    const struct slot *first = NULL;
    for (int i = 0; i < p->n_slots; i++) {
        const struct slot *s = &p->slots[i];
        if (!may_create(s))
            continue;
        due = restart_slot_due_ms(&p->st, s->name);
        if (due > p->now_ms) {
            planner_requeue(p, due);
            continue;
        }
        if (n == CREATES_PER_PASS || bytes >= CREATES_BYTES) {
            planner_requeue(p, p->now_ms);
            break;
        }
        bytes += create(p, CHILD_POD, s->name, desired_pod(p, s));
        first = n++ ? first : s;
    }
    tell_created(p, n, first);
}

/* Under Always a pod that ended well comes again, by itself, not sooner than 10 s after it ended. */
static void repeat_finished(struct planner *p)
{
    for (int i = 1; i < p->n_slots; i++) {
        const struct slot *s = &p->slots[i];
        if (s->spec->restart_policy != RESTART_ALWAYS || !s->pod || !planner_slot_done(s))
            continue;
        int64_t due = s->pod->training.finished_ms + ALWAYS_SPACING_MS;
        if (due > p->now_ms)
            planner_requeue(p, due);
        else
            planner_delete_pod(p, s->pod);
    }
}

/* Some pods of this attempt were made from another template and others are still to be made: they never mix. */
static bool template_mixed(const struct planner *p)
{
    bool other = false;
    bool missing = false;

    for (int i = 0; i < p->n_slots; i++) {
        const struct slot *s = &p->slots[i];
        if (s->pod)
            other |= s->pod->hash[0] && strcmp(s->pod->hash, p->spec->hash) != 0;
        else
            missing |= may_create(s) || !planner_slot_done(s);
    }
    return other && missing;
}

/* A job that was created suspended, and never ran, starts now: that is no resuming. */
static void leave_pause(struct planner *p)
{
    bool ran_before = p->st.attempt > 0;

    planner_condition(p, COND_PAUSED, false, ran_before ? "Resumed" : "Started", "");
    p->st.phase = ran_before ? JOB_RESUMING : JOB_NONE;
    if (!ran_before)
        return;
    p->st.resume_count = count_up(p->st.resume_count);
    planner_event(p, false, "Resumed", "attempt %d begins", p->st.attempt);
}

static void begin(struct planner *p)
{
    if (p->st.conditions[COND_PAUSED].state == COND_TRUE || p->st.phase == JOB_PAUSED)
        leave_pause(p);
    if (!p->st.start_ms)
        p->st.start_ms = p->now_ms;
    if (p->st.phase == JOB_NONE) {
        p->st.phase = JOB_PENDING;
        desired_pod_warnings(p);
    }
    if (p->st.conditions[COND_INVALID_SPEC].state == COND_TRUE)
        planner_condition(p, COND_INVALID_SPEC, false, "SpecValid", "");
}

void lifecycle_run(struct planner *p)
{
    begin(p);
    if (success_check(p) || deadline_check(p)) {
        cleanup_finished(p);
        return;
    }
    int attempt = p->st.attempt;
    restart_judge(p);
    if (jobstatus_finished(&p->st)) {
        cleanup_finished(p);
        return;
    }
    if (p->st.attempt == attempt && attempt < COUNT_MAX && template_mixed(p)) {
        restart_next_attempt(p);
        planner_event(p, false, "Restarting", "attempt %d begins with the changed template", p->st.attempt);
    }
    scale_announce(p);
    delete_leftovers(p);
    repeat_finished(p);
    create_missing(p);
}

/* Pausing raises the attempt, counts nothing and keeps no pods. */
void lifecycle_pause(struct planner *p)
{
    if (p->st.conditions[COND_INVALID_SPEC].state == COND_TRUE)
        planner_condition(p, COND_INVALID_SPEC, false, "SpecValid", "");
    if (p->st.conditions[COND_PAUSED].state != COND_TRUE) {
        if (success_check(p)) {
            cleanup_finished(p);
            return;
        }
        if (p->st.start_ms || p->in->n_pods > 0)
            restart_next_attempt(p);
        p->st.start_ms = 0;
        planner_condition(p, COND_PAUSED, true, "Paused", "");
        planner_condition(p, COND_RUNNING, false, "Paused", "");
        planner_event(p, false, "Paused", "the job's pods are deleted");
    }
    p->st.phase = JOB_PAUSED;
    delete_leftovers(p);
}
