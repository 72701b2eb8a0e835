/* lifecycle.c - plan a job that is not finished: start, run, pause, resume. */
#include "operator/plan/lifecycle.h"

#include "operator/plan/avoid.h"
#include "operator/plan/desired.h"
#include "operator/plan/finish.h"
#include "operator/plan/gang.h"
#include "operator/plan/guards.h"
#include "operator/plan/observe.h"
#include "operator/plan/queue.h"
#include "operator/plan/restart.h"
#include "operator/plan/scale.h"
#include "operator/plan/status.h"

#include <string.h>

enum {
    CREATES_PER_PASS = 250,
    ALWAYS_SPACING_MS = 10000,
    TEMPLATE_SPACING_MS = 10000,
    MASTER_WAIT_MS = 10000
};

/* One event for all pods: the rate of events per object is limited, and others must not be dropped. */
static void report_created(struct planner *p, int n, const struct slot *first)
{
    int restarts = n && first->seen ? first->seen->restarts : 0;
    const int attempt = p->st.attempt;

    if (n > 1)
        planner_event_in(p, &p->creates, false, "ReplicaCreated", "%d pods, attempt %d", n, attempt);
    else if (restarts)
        planner_event_in(p, &p->creates, false, "ReplicaCreated", "pod %s, attempt %d, restart %d",
                         first->name, attempt, restarts);
    else if (n)
        planner_event_in(p, &p->creates, false, "ReplicaCreated", "pod %s, attempt %d", first->name, attempt);
}

/* Whatever attempt their labels name. */
static void delete_all_pods(struct planner *p)
{
    for (int i = 0; i < p->in->n_pods; i++)
        (void)planner_delete_pod(p, p->in->pods[i]);
}

static bool has_slot(const struct planner *p, const struct pod *pod)
{
    for (int s = 0; s < p->n_slots; s++)
        if (p->slots[s].pod == pod)
            return true;
    return false;
}

/* Delete pods of earlier attempts and, unless the attempt goes on with an older template, pods without a slot in the
 * spec. */
static void delete_leftovers(struct planner *p, bool surplus)
{
    for (int i = 0; i < p->in->n_pods; i++) {
        const struct pod *pod = p->in->pods[i];
        if (pod->attempt != p->st.attempt || (surplus && !has_slot(p, pod)))
            (void)planner_delete_pod(p, pod);
    }
}

static bool may_create(const struct slot *s)
{
    if (s->pod || s->leaving)
        return false;
    if (!s->seen || !s->seen->uid)
        return true;
    /* The pod existed in this attempt. Only Always repeats a finished one; any other is judged first. */
    return s->spec->restart_policy == RESTART_ALWAYS && s->order != 0 && planner_slot_done(s);
}

static bool has_missing(const struct planner *p)
{
    for (int i = 0; i < p->n_slots; i++)
        if (!p->slots[i].pod && (may_create(&p->slots[i]) || !planner_slot_done(&p->slots[i])))
            return true;
    return false;
}

/* If the last reconcile had a problem with a child that this plan would create: report it, and wait for its
 * retry time. */
static bool creation_held(struct planner *p)
{
    static const char *const REASONS[] = {"", "NameConflict", "PodRefused", "InvalidSpec", "CreateFailed"};
    const struct plan_problem *problem = &p->in->problem;
    bool workload = problem->child == CHILD_WORKLOAD && problem->kind == PROBLEM_REFUSED;

    if (problem->kind == PROBLEM_NONE ||
        strcmp(problem->name, desired_tensorboard_name(p->a, p->job->name)) == 0 ||
        (problem->child == CHILD_POLICY && !has_missing(p))) /* TensorBoard's */
        return false;
    const char *message = arena_strdup(p->a, problem->message);
    planner_reason(p, workload ? "WorkloadRefused" : REASONS[problem->kind], NULL, message);
    if (problem->kind == PROBLEM_INVALID)
        planner_condition(p, COND_INVALID_SPEC, true, "InvalidSpec", message);
    if (p->st.conditions[COND_INITIALIZED].state != COND_TRUE)
        planner_condition(p, COND_INITIALIZED, false, REASONS[problem->kind], message);
    return !planner_is_due(p, problem->retry_ms);
}

static bool has_pods(const struct planner *p, int type)
{
    for (int i = 0; i < p->n_slots; i++)
        if (p->slots[i].type == type && p->slots[i].pod)
            return true;
    return false;
}

/* A gang scheduler starts no pod before all pods of the job exist. */
static bool has_gang_scheduler(const struct planner *p)
{
    return gang_of(p) != GANG_NONE || gang_is_theirs(p->slots[0].spec->template);
}

/* Until when the other pods wait for pod 0 to have an address: a program without torchrun may resolve its
 * name only once. 0: do not wait; also if pod 0 has a problem. */
static int64_t others_due_ms(struct planner *p)
{
    const struct slot *first = &p->slots[0];
    const struct pod *pod = first->pod;

    if (p->n_slots == 1 || p->spec->torchrun.enabled || p->spec->debug.enabled || has_gang_scheduler(p))
        return 0;
    if (!pod)
        return may_create(first) || first->leaving ? p->now_ms + MASTER_WAIT_MS : 0;
    p->others_follow = p->in->n_pods == 1 && !p->in->status_first;
    if (pod->ip[0] || pod_is_running(pod) || planner_waiting(p, first).reason)
        return 0;
    int64_t due = pod->created_ms + MASTER_WAIT_MS;
    return due <= p->now_ms + 2 * MASTER_WAIT_MS ? due
                                                 : 0; /* otherwise the API server's clock is far ahead */
}

/* The pod bodies of this plan so far. */
struct portion {
    int64_t others_due_ms;
    int n;
    size_t bytes;
    size_t unsure_bytes; /* part of `bytes`: of pods that may be refused like the first one */
    size_t last_bytes;   /* estimate for the next one */
    const struct slot *first;
    bool *done; /* of each slot */
    bool full;
};

static bool is_full(const struct planner *p, const struct portion *made, bool unsure)
{
    size_t limit = p->in->create_bytes ? p->in->create_bytes : PLAN_CREATE_BYTES;

    return made->n == CREATES_PER_PASS ||
           (made->n > 0 && (made->bytes + made->last_bytes > limit ||
                            (unsure && made->unsure_bytes + made->last_bytes > PLAN_FIRST_BYTES)));
}

/* The order of creates: a pod that was refused, then one pod of each replicaSpec without pods, then the rest.
 * So a job whose spec is refused does not run in part. */
enum turn { TURN_REFUSED, TURN_FIRST, TURN_REST, TURNS };

static void create_pod(struct planner *p, int i, bool unsure, bool alone, struct portion *made)
{
    const struct slot *s = &p->slots[i];

    if (is_full(p, made, unsure)) {
        planner_requeue(p, p->now_ms);
        made->full = true;
        return;
    }
    if (made->n == 0) {
        guards_create(p);
        gang_create(p);
    }
    struct action *act = planner_create(p, &p->creates, CHILD_POD, s->name, desired_pod(p, s));
    made->last_bytes = strlen(act->body);
    made->bytes += made->last_bytes;
    made->unsure_bytes += unsure ? made->last_bytes : 0;
    act->first = alone;
    act->gang = gang_of(p);
    act->lenient = p->st.ran_attempt >= 0;
    made->first = made->n++ ? made->first : s;
    made->done[i] = true;
}

static void create_turn(struct planner *p, enum turn turn, struct portion *made)
{
    const struct plan_problem *problem = &p->in->problem;
    bool new_type = false;
    int type = -1;

    for (int i = 0; i < p->n_slots && !made->full; i++) {
        const struct slot *s = &p->slots[i];
        if (made->done[i] || !may_create(s))
            continue;
        int64_t due = restart_slot_due_ms(&p->st, s->name);
        if (i > 0 && due < made->others_due_ms && (turn != TURN_REFUSED || problem->kind != PROBLEM_INVALID))
            due = made->others_due_ms;
        if (!planner_is_due(p, due))
            continue;
        bool begins = s->type != type;
        if (begins)
            new_type = !has_pods(p, s->type);
        type = s->type;
        if (turn == TURN_REST || (turn == TURN_FIRST && begins && new_type) ||
            (turn == TURN_REFUSED && problem->kind != PROBLEM_NONE && strcmp(problem->name, s->name) == 0))
            create_pod(p, i, new_type || problem->kind != PROBLEM_NONE, turn != TURN_REST, made);
    }
}

/* Create missing pods, up to the limits of one plan. */
static void create_pods(struct planner *p)
{
    struct portion made = {.others_due_ms = others_due_ms(p),
                           .done = arena_array(p->a, (size_t)p->n_slots, bool)};

    for (int turn = TURN_REFUSED; turn < TURNS; turn++)
        create_turn(p, (enum turn)turn, &made);
    if (made.n == 0 && gang_is_missed(p))
        gang_create(p);
    report_created(p, made.n, made.first);
}

static void create_missing(struct planner *p)
{
    int64_t due = restart_due_ms(&p->st);

    p->out->creates_wait = p->n_old_pods > 0 || due > p->now_ms;
    bool held = (!p->out->creates_wait || p->in->problem.kind == PROBLEM_INVALID) && creation_held(p);
    if (p->queue.verdict == QUEUE_HOLD) {
        if (has_missing(p))
            queue_report(p);
        return;
    }
    if (p->n_old_pods > 0)
        return; /* a Terminating pod still has its GPU and its name */
    if (!planner_is_due(p, due) || held)
        return;
    if (!p->in->service)
        (void)planner_create(p, &p->creates, CHILD_SERVICE, desired_service_name(p->a, p->job->name),
                             desired_service(p));
    create_pods(p);
}

/* restartPolicy Always: repeat a pod that succeeded, alone, at the earliest 10 s after its end, or after its creation if the
 * node's clock is over 10 s ahead; at once if the API server's is, too. */
static void repeat_finished(struct planner *p)
{
    for (int i = 1; i < p->n_slots; i++) {
        const struct slot *s = &p->slots[i];
        if (s->spec->restart_policy != RESTART_ALWAYS || !s->pod || !planner_slot_done(s))
            continue;
        int64_t latest = p->now_ms + ALWAYS_SPACING_MS; /* clocks may differ by so much */
        int64_t finished = s->pod->training.finished_ms;
        int64_t from = finished > latest ? s->pod->created_ms : finished;
        if (from > latest || planner_is_due(p, from + ALWAYS_SPACING_MS))
            (void)planner_delete_pod(p, s->pod);
    }
}

/* The earliest time for a changed template to replace the attempt, from the second change on. 0: now; also if
 * the API server's clock is ahead. */
static int64_t template_due_ms(const struct planner *p)
{
    int64_t began = planner_oldest_ms(p);
    bool first = p->st.restarts <= jobstatus_counted(&p->st);

    return !first && began <= p->now_ms ? began + TEMPLATE_SPACING_MS : 0;
}

/* Whether the attempt has a pod more than the spec. The others expect it, unless the job is elastic. */
static bool has_surplus(const struct planner *p)
{
    for (int i = 0; i < p->in->n_pods && !p->spec->elastic.enabled; i++)
        if (p->in->pods[i]->attempt == p->st.attempt && !has_slot(p, p->in->pods[i]))
            return true;
    return false;
}

/* A changed template replaces an attempt whose pods never all ran, or are more than the spec has. Another one continues with its
 * template until a pod is missing: pods of two templates never run together. Failures in it are judged first.
 * False: this plan must not create pods. A status that was edited has no next attempt: the job ends when a pod is missing. */
static bool follow_template(struct planner *p, bool judged)
{
    bool ran = p->st.ran_attempt == p->st.attempt || planner_gang_runs(p);

    if (!planner_has_other_template(p) ||
        ((ran || p->st.attempt == COUNT_MAX) && !has_missing(p) && !has_surplus(p)))
        return true;
    if (!judged)
        return false;
    if (p->st.attempt == COUNT_MAX) {
        status_finish(p, JOB_FAILED, "AttemptLimitExceeded", "no attempt is left for the changed template");
        return false;
    }
    if (!planner_is_due(p, template_due_ms(p)))
        return false;
    restart_next_attempt(p);
    p->st.restarts = count_up(p->st.restarts);
    planner_event(p, false, "TemplateChanged", "attempt %d begins with the changed template", p->st.attempt);
    return true;
}

/* Whether the job never ran, some of its pods exist, and another pod's spec is refused: the existing pods
 * would occupy their nodes until a user corrects the spec. */
static bool is_refused_in_part(const struct planner *p)
{
    const struct plan_problem *problem = &p->in->problem;

    if (problem->kind != PROBLEM_INVALID || problem->child != CHILD_POD || p->st.ran_attempt >= 0 ||
        planner_gang_runs(p) || p->st.attempt == COUNT_MAX)
        return false;
    return planner_has_pods(p);
}

/* End a pause. For a job that was created suspended and never ran, this is a start, not a resume. */
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

/* The pods of a new job may be older than its first status. */
static int64_t start_time(const struct planner *p)
{
    int64_t ms = planner_oldest_ms(p);

    return ms && ms < p->now_ms ? ms : p->now_ms;
}

/* Whether the attempt has, or had, a pod. */
static bool has_begun(const struct planner *p)
{
    bool begun = false;

    for (int i = 0; i < p->n_slots; i++)
        begun |= p->slots[i].seen && p->slots[i].seen->uid;
    for (int i = 0; i < p->in->n_pods; i++)
        begun |= p->in->pods[i]->attempt == p->st.attempt;
    return begun;
}

static void begin(struct planner *p)
{
    if (jobstatus_pause_begun(&p->st) || p->st.phase == JOB_PAUSED)
        leave_pause(p);
    if (!p->st.start_ms && (p->queue.verdict != QUEUE_HOLD || has_begun(p)))
        p->st.start_ms = start_time(p);
    if (p->st.n_tasks == 0 && p->in->n_pods > 0) {
        observe_tasks(p); /* so that pods which ended before the first status are judged, too */
        planner_fill_slots(p);
    }
    if (p->st.phase == JOB_NONE) {
        p->st.phase = JOB_PENDING;
        desired_pod_warnings(p);
    }
}

/* A job that is not admitted has no pods. Its attempt ends as by a pause: no counter changes, and the status
 * reports it before the first delete. */
void lifecycle_wait(struct planner *p)
{
    if (has_begun(p)) {
        restart_next_attempt(p);
        planner_event(p, false, "Evicted", "attempt %d ends: %s", p->st.attempt - 1, p->queue.message);
    }
    p->st.start_ms = 0;
    if (queue_writes(p))
        (void)creation_held(p);
    queue_report(p);
    delete_all_pods(p);
}

void lifecycle_run(struct planner *p)
{
    begin(p);
    avoid_begin(p);
    if (finish_if_succeeded(p) || finish_if_overdue(p))
        return;
    if (p->queue.verdict == QUEUE_WAIT) {
        lifecycle_wait(p);
        return;
    }
    int attempt = p->st.attempt;
    bool judged = restart_judge(p);
    if (jobstatus_finished(&p->st))
        return;
    queue_settle(p, judged, has_missing(p));
    if (p->queue.verdict == QUEUE_WAIT) {
        lifecycle_wait(p);
        return;
    }
    if (p->st.attempt == attempt && is_refused_in_part(p))
        restart_next_attempt(p);
    if (p->st.attempt == attempt && judged)
        avoid_give_up(p);
    bool may_make = p->st.attempt != attempt || follow_template(p, judged);
    if (jobstatus_finished(&p->st))
        return;
    scale_announce(p);
    delete_leftovers(p, may_make);
    repeat_finished(p);
    if (may_make)
        create_missing(p);
}

/* A pause increments the attempt, changes no counter and deletes all pods. The status reports it before the
 * first delete. The job is Paused when its last pod is gone, since a queueing system then gives its quota to
 * others. */
void lifecycle_pause(struct planner *p)
{
    bool paused = p->st.conditions[COND_PAUSED].state == COND_TRUE;

    if (!jobstatus_pause_begun(&p->st)) {
        if (finish_if_succeeded(p))
            return;
        if (p->st.start_ms || p->in->n_pods > 0)
            restart_next_attempt(p);
        p->st.start_ms = 0;
    }
    if (p->in->n_pods > 0) {
        planner_condition(p, COND_PAUSED, false, JOBSTATUS_PAUSING, "");
        p->st.phase = JOB_PENDING;
        delete_all_pods(p);
        return;
    }
    if (!paused) {
        planner_condition(p, COND_PAUSED, true, "Paused", "");
        planner_condition(p, COND_RUNNING, false, "Paused", "");
        planner_event(p, false, "Paused", "the job has no pods");
    }
    p->st.phase = JOB_PAUSED;
}
