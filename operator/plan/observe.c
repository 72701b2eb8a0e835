/* observe.c - derive tasks, ready count, phase and REASON from the pods. */
#include "operator/plan/observe.h"

#include "operator/plan/scale.h"
#include "operator/plan/status.h"

#include <string.h>

static enum replica_phase replica_phase(const struct pod *pod)
{
    if (pod->training.state == CONTAINER_TERMINATED)
        return pod->training.exit_code == 0 ? REPLICA_SUCCEEDED : REPLICA_FAILED;
    switch (pod->phase) {
    case POD_PENDING:
        return REPLICA_PENDING;
    case POD_RUNNING:
        return REPLICA_RUNNING;
    case POD_SUCCEEDED:
        return REPLICA_SUCCEEDED;
    case POD_FAILED:
        return REPLICA_FAILED;
    case POD_PHASE_UNKNOWN:
        break;
    }
    return REPLICA_UNKNOWN;
}

static void observe_replica(struct planner *p, const struct slot *s, struct replica_status *r)
{
    static const char *const STATES[] = {NULL, "Waiting", "Running", "Terminated"};

    if (s->seen)
        *r = *s->seen;
    else
        *r = (struct replica_status){.exit_code = -1};
    r->name = s->name;
    if (!s->pod) {
        bool over = jobstatus_finished(&p->st) || p->spec->paused;
        r->phase = r->uid || over ? REPLICA_DELETED : REPLICA_CREATING;
        return;
    }
    r->uid = s->pod->uid;
    if (s->pod->restart > r->restarts)
        r->restarts = s->pod->restart; /* the status was lost: use the pod's label */
    r->phase = replica_phase(s->pod);
    r->container = s->pod->training.name;
    r->state = STATES[s->pod->training.state];
    r->exit_code = s->pod->training.state == CONTAINER_TERMINATED ? s->pod->training.exit_code : -1;
}

void observe_tasks(struct planner *p)
{
    struct task_status *tasks = arena_array(p->a, (size_t)p->spec->n_replica_specs, struct task_status);

    for (int t = 0; t < p->spec->n_replica_specs; t++) {
        tasks[t].type = p->spec->replica_specs[t].type;
        tasks[t].n_replicas = scale_entries(p, t);
        tasks[t].replicas = arena_array(p->a, (size_t)tasks[t].n_replicas, struct replica_status);
        for (int i = p->spec->replica_specs[t].replicas; i < tasks[t].n_replicas; i++)
            scale_remember(p, t, i, &tasks[t].replicas[i]);
        const struct task_status *old = planner_task(p, tasks[t].type);
        tasks[t].restart_count = old ? old->restart_count : 0;
    }
    for (int i = 0; i < p->n_slots; i++)
        observe_replica(p, &p->slots[i], &tasks[p->slots[i].type].replicas[p->slots[i].index]);
    p->st.tasks = tasks;
    p->st.n_tasks = p->spec->n_replica_specs;
}

static void observe_waiting(struct planner *p, const struct slot *s)
{
    struct waiting w;

    if (p->st.reason)
        return; /* report only the first pod with a problem */
    if (!s->pod)
        return;
    w = planner_waiting(p, s);
    if (w.due_ms)
        planner_requeue(p, w.due_ms);
    if (w.reason)
        planner_reason(p, w.reason, w.subject, arena_printf(p->a, "pod %s: %s", s->name, w.message));
}

static void observe_stuck(struct planner *p)
{
    for (int i = 0; i < p->in->n_pods; i++) {
        const struct pod *pod = p->in->pods[i];
        if (!pod->deletion_ms)
            continue;
        struct waiting w = waiting_for_end(pod, p->now_ms, p->a);
        if (w.due_ms)
            planner_requeue(p, w.due_ms);
        else
            planner_reason(p, w.reason, w.subject, w.message);
    }
}

/* Image errors alternate between two messages, and a program that keeps failing may have a new message each
 * time. Keep the first message, so that they do not cause endless status writes. */
static const char *steady_message(const struct planner *p, const char *reason, const char *message)
{
    const struct condition *old = &p->job->status.conditions[COND_RUNNING];

    bool changes =
        reason && (strcmp(reason, "ImagePullFailed") == 0 || strcmp(reason, "CrashLoopBackOff") == 0);
    if (changes && old->reason && strcmp(old->reason, reason) == 0 && old->message)
        return old->message;
    return message;
}

/* A condition's reason is one CamelCase word; the REASON column may append a subject. */
static const char *first_word(struct planner *p, const char *reason)
{
    return arena_strndup(p->a, reason, strcspn(reason, " "));
}

static void observe_live(struct planner *p, int running, int done, bool unknown)
{
    bool restarting = p->st.last_failure && p->st.last_failure->attempt >= p->st.attempt - 1 &&
                      p->st.last_failure->time_ms >= p->st.start_ms; /* otherwise the job was paused since */
    bool all = running > 0 && running + done == p->n_slots;
    bool failing = false;
    const char *count = arena_printf(p->a, "%d of %d pods are running", running, p->n_slots);

    for (int i = 0; i < p->n_slots; i++)
        failing |= p->slots[i].pod && pod_ended(p->slots[i].pod) && !planner_slot_done(&p->slots[i]);
    if (planner_gang_runs(p)) {
        p->st.phase = JOB_RUNNING;
        planner_condition(p, COND_RUNNING, true, "PodsRunning", count);
        if (all)
            planner_condition(p, COND_REPLICA_FAILURE, false, p->st.last_failure ? "Recovered" : "NoFailure",
                              "");
        return;
    }
    if (unknown)
        p->st.phase = JOB_UNKNOWN;
    else if ((p->st.phase != JOB_RESUMING || restarting) && !(failing && p->st.phase == JOB_RUNNING))
        p->st.phase = JOB_PENDING;
    if (p->st.phase == JOB_RUNNING)
        return; /* a failure is being judged */
    if (restarting)
        planner_reason(p, "Restarting", NULL, count);
    if (running > 0 && !unknown)
        planner_reason(p, STATUS_PODS_STARTING, arena_printf(p->a, "%d/%d", running, p->n_slots), count);
    const char *reason = p->st.reason                  ? first_word(p, p->st.reason)
                         : p->st.phase == JOB_RESUMING ? "Resuming"
                                                       : "PodsPending";
    planner_condition(p, COND_RUNNING, false, reason,
                      steady_message(p, reason, p->reason_message ? p->reason_message : count));
}

/* The pods of a job that is being paused are being deleted. */
static void observe_pausing(struct planner *p)
{
    if (p->st.phase == JOB_PAUSED)
        return;
    planner_reason(p, JOBSTATUS_PAUSING, NULL,
                   arena_printf(p->a, "pods that still exist: %d", p->in->n_pods));
    planner_condition(p, COND_RUNNING, false, first_word(p, p->st.reason), p->reason_message);
}

void observe_job(struct planner *p)
{
    bool over = jobstatus_finished(&p->st);
    bool live = !over && !p->spec->paused;
    int running = 0;
    int done = 0;
    int active = 0;
    int there = 0;
    bool unknown = false;

    observe_tasks(p);
    for (int i = 0; i < p->n_slots; i++) {
        const struct pod *pod = p->slots[i].pod;
        running += pod && pod_is_running(pod);
        done += planner_slot_done(&p->slots[i]);
        active += pod && !pod_ended(pod);
        there += pod != NULL;
        unknown |= pod && pod->phase == POD_PHASE_UNKNOWN;
        if (live)
            observe_waiting(p, &p->slots[i]);
    }
    observe_stuck(p);
    p->st.ready = over ? "-" : arena_printf(p->a, "%d/%d", running, p->n_slots);
    /* A queueing system may give a paused job's quota to others when its last pod is gone, not while it is being deleted. */
    p->st.replicas = over ? 0 : live ? active : p->in->n_pods;
    p->st.gpus = p->spec->gpus;
    p->st.selector = arena_printf(p->a, LABEL_JOB "=%s", p->job->name);
    if (live && there == p->n_slots)
        planner_condition(p, COND_INITIALIZED, true, "PodsCreated", "");
    if (live)
        observe_live(p, running, done, unknown);
    else if (!over)
        observe_pausing(p);
}
