/* queue.c - what a queued job may do, by its Workload, and what becomes of the Workload. */
#include "operator/plan/queue.h"

#include "common/clock.h"
#include "common/text.h"
#include "operator/plan/admission.h"
#include "operator/plan/desired.h"
#include "operator/plan/queuespec.h"

#include <stdlib.h>
#include <string.h>

enum {
    PLACE_AGAIN_MS = 30000,
    SUBJECT_BYTES = 100,
    DEFAULT_GRACE_S = 30,
    REMOTE_END_S = 60,
    ADOPTED_BYTES = 3 << 19
};

/* What becomes of the job's Workload when no pod is active. */
enum step {
    STEP_NONE,
    STEP_CREATE,
    STEP_RELEASE,
    STEP_DELETE, /* or, when that is under way, remove the finalizer */
    STEP_FAIL,   /* Finished: the pods cannot be as the admission says */
    STEP_ADOPT,
    STEP_OUT_OF_SYNC, /* Finished: MultiKueue sends the job anew */
};

static cJSON *at(const cJSON *node, const char *key)
{
    return cJSON_GetObjectItemCaseSensitive(node, key);
}

char *queue_workload_name(struct arena *a, const struct trainjob *job)
{
    return job->queue.prebuilt ? arena_strdup(a, job->queue.prebuilt)
                               : arena_printf(a, "pytorchtrainingjob-%s-%.8s", job->name, job->uid);
}

/* ---- pods */

/* Whether a pod may still use what the quota is for. */
static bool is_active(const struct pod *pod)
{
    return pod->phase != POD_SUCCEEDED && pod->phase != POD_FAILED;
}

static bool has_active_pods(const struct plan_input *in)
{
    for (int i = 0; i < in->n_pods; i++)
        if (is_active(in->pods[i]))
            return true;
    return false;
}

/* What MultiKueue copied of the job's status. A job that ends by an eviction has pods of its last attempt until the
 * worker cluster has given the quota back. */
static bool shows_pods(const struct jobstatus *st)
{
    if (st->reason && strncmp(st->reason, "Evicted", strlen("Evicted")) == 0)
        return true;
    for (int t = 0; t < st->n_tasks; t++)
        for (int i = 0; i < st->tasks[t].n_replicas; i++) {
            enum replica_phase phase = st->tasks[t].replicas[i].phase;
            if (phase == REPLICA_PENDING || phase == REPLICA_RUNNING || phase == REPLICA_UNKNOWN)
                return true;
        }
    return false;
}

bool queue_is_used(const struct planner *p)
{
    return p->queue.remote ? shows_pods(&p->job->status) : has_active_pods(p->in);
}

/* ---- the verdict */

static void wait_for(struct planner *p, enum step step, const char *reason, const char *message)
{
    p->queue.verdict = QUEUE_WAIT;
    p->queue.step = (int)step;
    p->queue.reason = reason;
    p->queue.message = message;
}

static void hold(struct planner *p, const char *message)
{
    wait_for(p, STEP_NONE, QUEUE_REASON, message);
    p->queue.verdict = QUEUE_HOLD;
}

static bool is_reserved(const struct workload *w)
{
    return w->has_admission || workload_is(w, WORKLOAD_QUOTA_RESERVED);
}

static bool is_evicted(const struct workload *w)
{
    return workload_is(w, WORKLOAD_EVICTED) && is_reserved(w) && !workload_is(w, WORKLOAD_FINISHED);
}

/* A flavour of the admission that cannot be used now, and why; NULL: none. */
static const char *lost_flavor(struct planner *p)
{
    const cJSON *assignment, *f;

    cJSON_ArrayForEach(assignment, p->queue.assignments)
    {
        cJSON_ArrayForEach(f, at(assignment, "flavors"))
        {
            const char *name = cJSON_IsString(f) ? f->valuestring : "";
            const struct queue_setting *s = queuespec_setting(p, QUEUE_FLAVOR, name);
            if (!s || s->unreadable[0])
                return arena_printf(p->a, "the ResourceFlavor %s %s", name,
                                    s ? s->unreadable : "does not exist");
        }
    }
    return NULL;
}

/* How the admission contradicts a pod template; NULL: not at all. */
static const char *contradiction(struct planner *p)
{
    for (int t = 0; t < p->spec->n_replica_specs; t++) {
        const struct replica_spec *r = &p->spec->replica_specs[t];
        const char *key = admission_conflict(p, cJSON_GetArrayItem(p->queue.assignments, t), r->template);
        if (key)
            return arena_printf(p->a, "the admission and the pod template of %s set different values of %s",
                                r->type, key);
    }
    return NULL;
}

/* Whether the job had pods under this admission: then the flavour was changed since. */
static bool has_started(const struct planner *p)
{
    const struct workload_condition *ready = &p->queue.workload->conditions[WORKLOAD_PODS_READY];

    return ready->state == COND_TRUE || strcmp(ready->reason, "WaitForRecovery") == 0 || planner_has_pods(p);
}

/* Whether pods can be created as the admission says. A job that has changed is not judged by its new template:
 * soon it queues again. */
static void check_admission(struct planner *p)
{
    const char *lost = lost_flavor(p), *contradicted = contradiction(p);

    if (cJSON_GetArraySize(p->queue.assignments) != p->spec->n_replica_specs)
        hold(p, "the admission has not one assignment for each replicaSpec");
    else if (lost)
        hold(p, lost);
    else if (contradicted && p->queue.changed)
        hold(p, contradicted);
    else if (contradicted && has_started(p))
        wait_for(p, STEP_DELETE, QUEUE_REASON, contradicted);
    else if (contradicted)
        wait_for(p, STEP_FAIL, QUEUE_REASON_FAILED, contradicted);
}

/* An elastic job has as many pods as the admission allows. */
static void take_count(struct planner *p)
{
    int64_t count = json_i64(cJSON_GetArrayItem(p->queue.assignments, 0), "count", -1);
    int64_t limit = strtoll(p->queue.workload->sizes, NULL, 10); /* lower after the job has shrunk */

    count = limit < count ? limit : count;
    if (!p->spec->elastic.enabled || p->spec->n_replica_specs != 1 || count <= 0 ||
        count >= p->spec->replica_specs[0].replicas)
        return;
    struct trainjob_spec *less = arena_new(p->a, struct trainjob_spec);
    *less = *p->spec;
    less->gpus = less->gpus / less->replica_specs[0].replicas * count;
    less->pods = less->elastic.expected = less->replica_specs[0].replicas = (int32_t)count;
    p->spec = less;
}

/* Why Kueue has not admitted it. */
static const char *waiting_message(struct planner *p)
{
    const struct workload *w = p->queue.workload;
    const struct workload_condition *quota = &w->conditions[WORKLOAD_QUOTA_RESERVED];
    char due[CLOCK_RFC3339_BYTES];

    if (quota->state == COND_TRUE)
        return "the quota is reserved; admission checks are pending";
    p->queue.silent = !quota->message[0];
    const char *message =
        quota->message[0] ? arena_strdup(p->a, quota->message) : "Kueue has not tried it yet";
    if (w->requeue_ms <= p->now_ms)
        return message;
    clock_rfc3339(w->requeue_ms, false, due);
    return arena_printf(p->a, "%s; not before %s", message, due);
}

enum sizes { SIZES_SAME, SIZES_LESS, SIZES_OTHER };

/* Compare the counts of a Workload with quota. SIZES_LESS: Kueue accepts the lower one of an elastic job. The minimum
 * has no effect any more, but no count may be below it. */
static enum sizes compare_sizes(const struct planner *p, const struct queuespec *want, const char *sizes)
{
    bool same = true, less = p->spec->elastic.enabled && want->n == 1;

    for (int t = 0; t < want->n; t++) {
        char *end;
        int64_t count = strtoll(sizes, &end, 10);
        int64_t min = *end == '/' ? strtoll(end + 1, &end, 10) : 0;
        same &= count == want->sets[t].count;
        less &= want->sets[t].count < count && want->sets[t].count >= min;
        sizes = *end ? end + 1 : end;
    }
    return same ? SIZES_SAME : less ? SIZES_LESS : SIZES_OTHER;
}

/* A job that is no longer as its Workload queues again. A Workload of MultiKueue must stay as it was sent. */
static enum step step_of_change(const struct planner *p)
{
    return p->job->queue.prebuilt ? STEP_OUT_OF_SYNC : STEP_DELETE;
}

static void release(struct planner *p)
{
    const struct workload_condition *evicted = &p->queue.workload->conditions[WORKLOAD_EVICTED];

    wait_for(p, STEP_RELEASE, arena_printf(p->a, "Evicted %.60s", evicted->reason),
             arena_strdup(p->a, evicted->message));
}

static void decide_by_conditions(struct planner *p, const struct queuespec *want)
{
    const struct workload *w = p->queue.workload;
    enum sizes sizes = compare_sizes(p, want, w->sizes);
    bool same_content = queuespec_same_content(want, w), same = same_content && sizes == SIZES_SAME;
    bool admitted = workload_is(w, WORKLOAD_ADMITTED) && w->has_admission;
    struct err ignored;

    if (is_evicted(w)) {
        release(p);
        return;
    }
    bool other = !same && !admitted && (is_reserved(w) || p->job->queue.prebuilt);
    wait_for(p, other ? step_of_change(p) : STEP_NONE, QUEUE_REASON, waiting_message(p));
    p->queue.pending = !is_reserved(w) && !other;
    if (!is_reserved(w) && !p->job->queue.prebuilt)
        p->queue.patch = queuespec_waiting_patch(p, want, w);
    if (!is_reserved(w) || !admitted)
        return;
    p->queue.verdict = QUEUE_RUN;
    p->queue.assignments = json_parse(w->assignments, strlen(w->assignments), &ignored);
    p->queue.changed = !same_content || sizes == SIZES_OTHER;
    p->queue.patch = p->job->queue.prebuilt ? NULL : queuespec_admitted_patch(p, want, w);
    take_count(p);
}

static void decide(struct planner *p)
{
    const struct workload *w = p->queue.workload;
    struct queuespec want;

    queuespec_read(p, &want);
    if (!w && p->job->queue.prebuilt) {
        wait_for(p, STEP_ADOPT, QUEUE_REASON,
                 arena_printf(p->a, "the Workload %.253s is not there, or belongs to another job",
                              p->job->queue.prebuilt));
    } else if (want.unknown && !p->job->queue.prebuilt && (!w || (!w->deleting && !is_reserved(w)))) {
        wait_for(p, STEP_NONE, QUEUE_REASON,
                 arena_printf(p->a, "the %s %s does not exist", want.class_kind, want.unknown));
    } else if (!w) {
        wait_for(p, STEP_CREATE, QUEUE_REASON, "its Workload is not created yet");
        p->queue.silent = true;
    } else if (w->deleting) {
        wait_for(p, STEP_DELETE, QUEUE_REASON, "its Workload is being deleted");
    } else if (workload_is(w, WORKLOAD_FINISHED)) {
        const struct workload_condition *end = &w->conditions[WORKLOAD_FINISHED];
        bool failed = strcmp(end->reason, QUEUE_REASON_FAILED) == 0 && queuespec_same_content(&want, w);
        bool stays = failed || p->queue.remote || p->job->queue.prebuilt;
        wait_for(p, stays ? STEP_NONE : STEP_DELETE, failed ? QUEUE_REASON_FAILED : QUEUE_REASON,
                 failed ? arena_strdup(p->a, end->message) : "its Workload is finished");
    } else {
        decide_by_conditions(p, &want);
    }
}

/* An invalid job gets no pods. It keeps its quota while it has some. */
static void decide_invalid(struct planner *p)
{
    const struct workload *w = p->queue.workload;
    bool idle = w && !p->job->queue.prebuilt && !queue_is_used(p);

    if (w && is_evicted(w) && !w->deleting)
        release(p);
    else if (w && (w->deleting || idle))
        wait_for(p, STEP_DELETE, QUEUE_REASON, "its Workload is being deleted");
    else
        hold(p, "the spec is invalid");
}

void queue_begin(struct planner *p)
{
    const struct plan_queue *q = &p->in->queue;
    const char *name = queue_workload_name(p->a, p->job);
    const struct plan_seen *seen = &p->in->seen;

    p->seen.queued_again_ms = seen->queued_again_ms;
    memcpy(p->seen.queued_again, seen->queued_again, sizeof(p->seen.queued_again));
    p->seen.edit = seen->edit;
    p->seen.edit_ms = seen->edit_ms;
    p->seen.edits = seen->edits;
    p->seen.evicted_ms = seen->evicted_ms;
    for (int i = 0; i < q->n_workloads; i++)
        if (strcmp(q->workloads[i]->name, name) == 0)
            p->queue.workload = q->workloads[i];
    if (q->mode == QUEUE_OFF || !p->job->queue.name || jobstatus_finished(&p->st))
        return;
    if (q->mode == QUEUE_UNSEEN)
        hold(p, "the operator has not listed Kueue's objects yet");
    else if (p->job->spec_error)
        decide_invalid(p);
    else if (p->spec->paused)
        wait_for(p, STEP_DELETE, QUEUE_REASON, "the job is suspended");
    else
        decide(p);
}

void queue_settle(struct planner *p, bool judged, bool creates)
{
    static const char CHANGED[] = "the job has changed; it queues again";

    if (p->queue.verdict != QUEUE_RUN)
        return;
    bool again = p->queue.changed && !planner_gang_runs(p);
    if (again && judged)
        wait_for(p, step_of_change(p), QUEUE_REASON, CHANGED);
    else if (again)
        hold(p, CHANGED);
    else if (creates)
        check_admission(p);
    if (p->queue.verdict == QUEUE_WAIT)
        p->queue.patch = NULL;
}

bool queue_ends_pods(const struct planner *p)
{
    return p->queue.verdict == QUEUE_WAIT && has_active_pods(p->in);
}

bool queue_writes(const struct planner *p)
{
    return p->queue.patch || p->queue.step == STEP_CREATE || p->queue.step == STEP_ADOPT;
}

/* The place, and the message without the first words of Kueue's longest one, which are always the same. */
static const char *subject_of(struct planner *p)
{
    int place = p->queue.pending ? p->in->queue.place : 0;
    static const char PREFIX[] = "couldn't assign flavors to pod set ";
    const char *message = p->queue.message;
    const char *rest = strncmp(message, PREFIX, strlen(PREFIX)) == 0 ? strchr(message, ':') : NULL;
    char *text = arena_alloc(p->a, SUBJECT_BYTES);

    rest = p->queue.silent ? "" : rest ? rest + 1 + (rest[1] == ' ') : message;
    if (place)
        rest = arena_printf(p->a, "place %d%s%s", place, rest[0] ? ": " : "", rest);
    text_ellipsis(text, SUBJECT_BYTES, (size_t)snprintf(text, SUBJECT_BYTES, "%s", rest));
    return text[0] ? text : NULL;
}

void queue_report(struct planner *p)
{
    bool speaks = strcmp(p->queue.reason, QUEUE_REASON) == 0;

    if (p->queue.pending)
        planner_requeue(p, p->now_ms + PLACE_AGAIN_MS);
    planner_reason_about(p, p->queue.reason, speaks ? subject_of(p) : NULL, p->queue.message);
    if (p->st.conditions[COND_INITIALIZED].state != COND_TRUE)
        planner_condition(p, COND_INITIALIZED, false, QUEUE_REASON, p->queue.message);
}

/* ---- actions */

/* How long the pods of an evicted job may take to end; then its worker cluster is lost. */
static int64_t longest_end_ms(const struct trainjob_spec *spec)
{
    int64_t longest_s = 0;

    for (int t = 0; t < spec->n_replica_specs; t++) {
        int64_t s = json_i64(at(spec->replica_specs[t].template, "spec"), "terminationGracePeriodSeconds",
                             DEFAULT_GRACE_S);
        longest_s = s > longest_s ? s : longest_s;
    }
    return (longest_s + REMOTE_END_S) * 1000;
}

static bool is_active_remotely(struct planner *p)
{
    bool shown = shows_pods(&p->job->status);

    if (!shown || !p->queue.workload || !is_evicted(p->queue.workload)) {
        p->seen.evicted_ms = 0;
        return shown;
    }
    if (!p->seen.evicted_ms)
        p->seen.evicted_ms = p->now_ms;
    int64_t due = p->seen.evicted_ms + longest_end_ms(p->spec);
    if (due > p->now_ms)
        planner_requeue(p, due);
    return due > p->now_ms;
}

static struct action *act_on(struct planner *p, struct action_list *list, enum action_kind kind,
                             const struct workload *w)
{
    struct action *act = planner_add(p, list, kind);

    act->child = CHILD_WORKLOAD;
    act->name = arena_strdup(p->a, w->name);
    act->uid = arena_strdup(p->a, w->uid);
    return act;
}

static struct action *edit(struct planner *p, struct action_list *list, const struct workload *w,
                           enum action_edit what)
{
    struct action *act = act_on(p, list, ACTION_EDIT, w);

    act->edit = what;
    act->bytes = w->bytes;
    act->version = arena_strdup(p->a, w->version);
    act->body = what == EDIT_SPEC ? p->queue.patch : NULL;
    return act;
}

/* One condition has one manager: an apply removes what the same manager applied before and leaves out now. */
static void apply(struct planner *p, struct action_list *list, enum workload_condition_type type, bool on,
                  const char *reason, const char *message)
{
    const struct workload *w = p->queue.workload;
    const char *name = workload_condition_name(type);
    cleanup_json cJSON *text = cJSON_CreateString(message);
    char now[CLOCK_RFC3339_BYTES];
    struct action *act = act_on(p, list, ACTION_APPLY, w);

    clock_rfc3339(p->now_ms, false, now);
    act->manager = arena_printf(p->a, "ptj-operator-%s", name);
    act->body = arena_printf(
        p->a,
        "{\"apiVersion\":\"" WORKLOAD_API_VERSION "\",\"kind\":\"Workload\",\"metadata\":{\"name\":\"%s\","
        "\"namespace\":\"%s\",\"uid\":\"%s\"},\"status\":{\"conditions\":[{\"type\":\"%s\",\"status\":\"%s\","
        "\"reason\":\"%s\",\"message\":%s,\"lastTransitionTime\":\"%s\"}]}}",
        w->name, w->ns, w->uid, name, on ? "True" : "False", reason, planner_json(p, text), now);
}

/* Finalizers of others stay. */
static void remove_finalizer(struct planner *p, const struct workload *w)
{
    if (w->finalizer)
        act_on(p, &p->workloads, ACTION_PATCH, w)->body =
            arena_printf(p->a, "{\"metadata\":{\"uid\":\"%s\",\"resourceVersion\":\"%s\",\"finalizers\":%s}}",
                         w->uid, w->version, w->other_finalizers);
}

/* A deleted Workload loses its finalizer, any other is deleted. */
static void remove_workload(struct planner *p, const struct workload *w)
{
    if (!w->deleting)
        (void)planner_delete(p, &p->workloads, CHILD_WORKLOAD, w->name, w->uid);
    else
        remove_finalizer(p, w);
}

/* Whether a write of the Workload was refused, and is not due again. */
static bool is_refused_for_now(struct planner *p)
{
    const struct plan_problem *problem = &p->in->problem;
    bool waits =
        problem->kind != PROBLEM_NONE && problem->child == CHILD_WORKLOAD && problem->retry_ms > p->now_ms;

    if (waits)
        planner_requeue(p, problem->retry_ms);
    return waits;
}

static void create(struct planner *p)
{
    struct queuespec want;

    queuespec_read(p, &want);
    (void)planner_create(p, &p->workloads, CHILD_WORKLOAD, queue_workload_name(p->a, p->job),
                         queuespec_workload(p, &want));
}

static void adopt(struct planner *p)
{
    struct action *act = planner_add(p, &p->workloads, ACTION_EDIT);
    cleanup_json cJSON *meta = cJSON_CreateObject();

    desired_owner(p->job, meta);
    cJSON_AddStringToObject(cJSON_AddObjectToObject(meta, "labels"), WORKLOAD_GROUP "/job-uid", p->job->uid);
    act->child = CHILD_WORKLOAD;
    act->name = queue_workload_name(p->a, p->job);
    act->edit = EDIT_ADOPT;
    act->bytes = ADOPTED_BYTES;
    act->body = planner_json(p, meta);
}

/* The end of the job. Kueue frees the quota when the Workload is Finished. The finalizer is removed from the next
 * version. */
static void finish(struct planner *p, const struct workload *w)
{
    bool good = p->st.phase == JOB_SUCCEEDED;

    if (!workload_is(w, WORKLOAD_FINISHED) && !w->deleting)
        apply(p, &p->workloads, WORKLOAD_FINISHED, true, good ? "Succeeded" : "Failed",
              good ? "The job has succeeded" : "The job has failed");
    else
        remove_finalizer(p, w);
}

static void report_ready(struct planner *p)
{
    const struct workload *w = p->queue.workload;
    const struct workload_condition *c = &w->conditions[WORKLOAD_PODS_READY];
    bool recovers = strcmp(c->reason, "WaitForRecovery") == 0;
    int done = 0;

    for (int i = 0; i < p->n_slots; i++) {
        const struct pod *pod = p->slots[i].pod;
        done += (pod && pod_is_running(pod)) || planner_slot_done(&p->slots[i]);
    }
    bool ready = p->queue.remote ? p->st.conditions[COND_RUNNING].state == COND_TRUE
                                 : done == p->n_slots || (p->spec->elastic.enabled && planner_gang_runs(p));
    if (ready && c->state != COND_TRUE)
        apply(p, &p->ready, WORKLOAD_PODS_READY, true, recovers ? "Recovered" : "Started",
              "All pods are ready or have succeeded");
    else if (!ready && c->state == COND_TRUE)
        apply(p, &p->ready, WORKLOAD_PODS_READY, false, "WaitForRecovery", "A pod is being replaced");
}

/* Of an admitted job. No refusal of a write to its Workload keeps a pod from being created. One write: each needs
 * the version before it. */
static void act_on_admitted(struct planner *p)
{
    report_ready(p);
    if (p->ready.n == 0 && p->queue.patch && queuespec_may_edit(p))
        edit(p, &p->ready, p->queue.workload, EDIT_SPEC)->keep = true;
}

static void act_on_own(struct planner *p, bool active)
{
    const struct workload *w = p->queue.workload;

    if (p->queue.verdict != QUEUE_WAIT && (!w || p->job->spec_error))
        return;
    if (p->queue.verdict != QUEUE_WAIT)
        act_on_admitted(p);
    else if (p->queue.patch && !is_refused_for_now(p) && queuespec_may_edit(p))
        edit(p, &p->ready, w, EDIT_SPEC); /* last: if it is refused, nothing else waits for it */
    if (active && (!p->queue.remote || p->queue.step == STEP_RELEASE))
        return; /* the status may show pods for ever of a Workload that is gone: MultiKueue ends them */
    if (p->queue.step == STEP_CREATE && !is_refused_for_now(p))
        create(p);
    else if (p->queue.step == STEP_ADOPT && !is_refused_for_now(p))
        adopt(p);
    else if (p->queue.step == STEP_RELEASE)
        edit(p, &p->workloads, w, EDIT_RELEASE);
    else if (p->queue.step == STEP_DELETE && w && queuespec_may_queue_again(p, w))
        remove_workload(p, w);
    else if (p->queue.step == STEP_FAIL)
        apply(p, &p->workloads, WORKLOAD_FINISHED, true, QUEUE_REASON_FAILED, p->queue.message);
    else if (p->queue.step == STEP_OUT_OF_SYNC)
        apply(p, &p->workloads, WORKLOAD_FINISHED, true, "OutOfSync",
              "The job is not as its Workload any more");
}

void queue_act(struct planner *p)
{
    const struct plan_queue *q = &p->in->queue;
    bool over = jobstatus_finished(&p->st);
    bool active = p->queue.remote ? is_active_remotely(p) : has_active_pods(p->in);
    /* The job names another Workload than the one whose quota its pods use. */
    bool ends = active && !over && p->queue.verdict == QUEUE_WAIT && !p->queue.workload;

    if (q->mode != QUEUE_ON)
        return;
    for (int i = 0; i < q->n_workloads; i++) {
        const struct workload *w = q->workloads[i];
        bool own = w == p->queue.workload;
        bool finished = p->queue.remote && workload_is(w, WORKLOAD_FINISHED); /* by MultiKueue */
        if (own && (finished || (over && !active)))
            finish(p, w);
        else if ((!own && !(ends && is_reserved(w))) || (!over && p->queue.verdict == QUEUE_FREE))
            remove_workload(p, w);
    }
    if (!over && p->queue.verdict != QUEUE_FREE)
        act_on_own(p, active);
}

void queue_end(struct planner *p)
{
    cJSON_Delete(p->queue.assignments);
    p->queue.assignments = NULL;
}

/* A job that is being deleted may stay for long, by a finalizer of somebody else: others wait for its quota. */
static void give_back(struct planner *p, const struct workload *w)
{
    for (int i = 0; i < p->in->n_pods; i++) {
        const struct pod *pod = p->in->pods[i];
        if (is_active(pod) && !pod->deletion_ms)
            (void)planner_delete(p, &p->workloads, CHILD_POD, pod->name, pod->uid);
    }
    if (!has_active_pods(p->in))
        edit(p, &p->workloads, w, EDIT_RELEASE);
}

void plan_orphans(const struct plan_input *in, struct arena *a, struct plan *out)
{
    struct planner p = {.in = in, .a = a, .now_ms = in->now_ms};

    *out = (struct plan){0};
    for (int i = 0; i < in->queue.n_workloads; i++) {
        const struct workload *w = in->queue.workloads[i];
        if (w->deleting ? !has_active_pods(in) : !in->job)
            remove_workload(&p, w);
        else if (!w->deleting && is_evicted(w) && strcmp(w->name, queue_workload_name(a, in->job)) == 0)
            give_back(&p, w);
    }
    out->actions = p.workloads.items;
    out->n_actions = p.workloads.n;
}
