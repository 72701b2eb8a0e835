/* queue.c - what a queued job may do, by its Workload, and which step its Workload needs. */
#include "operator/plan/queue.h"

#include "common/clock.h"
#include "common/text.h"
#include "operator/plan/admission.h"
#include "operator/plan/queuespec.h"

#include <stdlib.h>
#include <string.h>

enum { PLACE_AGAIN_MS = 30000, SUBJECT_BYTES = 100, PLACES_EXACT = 10, PLACES_FAR = 100 };

char *queue_workload_name(struct arena *a, const struct trainjob *job)
{
    return job->queue.prebuilt ? arena_strdup(a, job->queue.prebuilt)
                               : arena_printf(a, "pytorchtrainingjob-%s-%.8s", job->name, job->uid);
}

/* ---- pods */

bool queue_has_active_pods(const struct plan_input *in)
{
    for (int i = 0; i < in->n_pods; i++)
        if (queue_is_active(in->pods[i]))
            return true;
    return false;
}

bool queue_shows_pods(const struct jobstatus *st)
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
    return p->queue.remote ? queue_shows_pods(&p->job->status) : queue_has_active_pods(p->in);
}

/* ---- the verdict */

static void wait_for(struct planner *p, enum queue_step step, const char *reason, const char *message)
{
    p->queue.verdict = QUEUE_WAIT;
    p->queue.step = (int)step;
    p->queue.reason = reason;
    p->queue.message = message;
}

static void hold(struct planner *p, const char *message)
{
    wait_for(p, QUEUE_STEP_NONE, QUEUE_REASON, message);
    p->queue.verdict = QUEUE_HOLD;
}

/* A flavour of the admission that cannot be used now, and why; NULL: none. */
static const char *lost_flavor(struct planner *p)
{
    const cJSON *assignment, *f;

    cJSON_ArrayForEach(assignment, p->queue.assignments)
    {
        cJSON_ArrayForEach(f, json_child(assignment, "flavors"))
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
        wait_for(p, QUEUE_STEP_DELETE, QUEUE_REASON, contradicted);
    else if (contradicted)
        wait_for(p, QUEUE_STEP_FAIL, QUEUE_REASON_FAILED, contradicted);
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
static enum queue_step step_of_change(const struct planner *p)
{
    return p->job->queue.prebuilt ? QUEUE_STEP_OUT_OF_SYNC : QUEUE_STEP_DELETE;
}

static void release(struct planner *p)
{
    const struct workload_condition *evicted = &p->queue.workload->conditions[WORKLOAD_EVICTED];

    wait_for(p, QUEUE_STEP_RELEASE, arena_printf(p->a, "Evicted %.60s", evicted->reason),
             arena_strdup(p->a, evicted->message));
}

static void decide_by_conditions(struct planner *p, const struct queuespec *want)
{
    const struct workload *w = p->queue.workload;
    enum sizes sizes = compare_sizes(p, want, w->sizes);
    bool same_content = queuespec_same_content(want, w), same = same_content && sizes == SIZES_SAME;
    bool admitted = workload_is(w, WORKLOAD_ADMITTED) && w->has_admission;
    struct err ignored;

    if (workload_is_evicted(w)) {
        release(p);
        return;
    }
    bool other = !same && !admitted && (workload_is_reserved(w) || p->job->queue.prebuilt);
    wait_for(p, other ? step_of_change(p) : QUEUE_STEP_NONE, QUEUE_REASON, waiting_message(p));
    p->queue.pending = !workload_is_reserved(w) && !other;
    if (!workload_is_reserved(w) && !p->job->queue.prebuilt)
        p->queue.patch = queuespec_waiting_patch(p, want, w);
    if (!workload_is_reserved(w) || !admitted)
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
        wait_for(p, QUEUE_STEP_ADOPT, QUEUE_REASON,
                 arena_printf(p->a, "the Workload %.253s is not there, or belongs to another job",
                              p->job->queue.prebuilt));
    } else if (want.unknown && !p->job->queue.prebuilt &&
               (!w || (!w->deleting && !workload_is_reserved(w)))) {
        wait_for(p, QUEUE_STEP_NONE, QUEUE_REASON,
                 arena_printf(p->a, "the %s %s does not exist", want.class_kind, want.unknown));
    } else if (!w) {
        wait_for(p, QUEUE_STEP_CREATE, QUEUE_REASON, "its Workload is not created yet");
        p->queue.silent = true;
    } else if (w->deleting) {
        wait_for(p, QUEUE_STEP_DELETE, QUEUE_REASON, "its Workload is being deleted");
    } else if (workload_is(w, WORKLOAD_FINISHED)) {
        const struct workload_condition *end = &w->conditions[WORKLOAD_FINISHED];
        bool failed = strcmp(end->reason, QUEUE_REASON_FAILED) == 0 && queuespec_same_content(&want, w);
        bool stays = failed || p->queue.remote || p->job->queue.prebuilt;
        wait_for(p, stays ? QUEUE_STEP_NONE : QUEUE_STEP_DELETE, failed ? QUEUE_REASON_FAILED : QUEUE_REASON,
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

    if (w && workload_is_evicted(w) && !w->deleting)
        release(p);
    else if (w && (w->deleting || idle))
        wait_for(p, QUEUE_STEP_DELETE, QUEUE_REASON, "its Workload is being deleted");
    else
        hold(p, "the spec is invalid");
}

/* The clock may have been set back since. */
static int64_t not_ahead(const struct planner *p, int64_t ms)
{
    return ms < p->now_ms ? ms : p->now_ms;
}

void queue_begin(struct planner *p)
{
    const struct plan_queue *q = &p->in->queue;
    const char *name = queue_workload_name(p->a, p->job);
    struct plan_seen *seen = &p->out->seen;

    seen->queued_again_ms = not_ahead(p, seen->queued_again_ms);
    seen->edit_ms = not_ahead(p, seen->edit_ms);
    seen->evicted_ms = not_ahead(p, seen->evicted_ms);
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
        wait_for(p, QUEUE_STEP_DELETE, QUEUE_REASON, "the job is suspended");
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
    return p->queue.verdict == QUEUE_WAIT && queue_has_active_pods(p->in);
}

bool queue_writes(const struct planner *p)
{
    return p->queue.patch || p->queue.step == QUEUE_STEP_CREATE || p->queue.step == QUEUE_STEP_ADOPT;
}

int queue_shown_place(int place)
{
    return place > PLACES_FAR ? PLACES_FAR + 1 : place > PLACES_EXACT ? PLACES_EXACT + 1 : place;
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
        rest = arena_printf(p->a, "place %s%d%s%s", place > PLACES_EXACT ? "over " : "",
                            place - (place > PLACES_EXACT), rest[0] ? ": " : "", rest);
    text_ellipsis(text, SUBJECT_BYTES, (size_t)snprintf(text, SUBJECT_BYTES, "%s", rest));
    return text[0] ? text : NULL;
}

void queue_report(struct planner *p)
{
    bool speaks = strcmp(p->queue.reason, QUEUE_REASON) == 0;

    if (p->queue.pending)
        planner_requeue(p, p->now_ms + PLACE_AGAIN_MS);
    planner_reason(p, p->queue.reason, speaks ? subject_of(p) : NULL, p->queue.message);
    if (p->st.conditions[COND_INITIALIZED].state != COND_TRUE)
        planner_condition(p, COND_INITIALIZED, false, QUEUE_REASON, p->queue.message);
}

void queue_end(struct planner *p)
{
    cJSON_Delete(p->queue.assignments);
    p->queue.assignments = NULL;
}
