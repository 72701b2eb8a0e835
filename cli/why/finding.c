/* finding.c - look through status, pods, events and nodes for what keeps the job from going on. */
#include "cli/why/finding.h"

#include "common/clock.h"
#include "operator/plan/exitcode.h"

#include <string.h>

enum { NO_STATUS_MS = 10000, EVENTS_SHOWN = 8, TEXT_LOG_LINES = 25 };

static const struct finding NOTHING = {
    .message = "", .text = "", .rank = -1, .exit_code = -1, .attempt = -1, .judged = true};

static bool is(const char *a, const char *b)
{
    return a && !strcmp(a, b);
}

static const cJSON *metadata(const cJSON *object)
{
    return json_find(object, (const char *[]){"metadata", NULL});
}

const cJSON *finding_object(const cJSON *list, const char *name)
{
    const cJSON *object;

    cJSON_ArrayForEach(object, list) if (name && is(json_str(metadata(object), "name"), name)) return object;
    return NULL;
}

struct sv finding_own_log(const char *log)
{
    struct sv all = sv_from(log ? log : "");
    const char *report = strstr(all.p, "] failed (exitcode: ");

    while (report && report > all.p && report[-1] != '\n')
        report--;
    if (report && report > all.p)
        all.len = (size_t)(report - all.p);
    return all;
}

static struct sv last_lines(struct sv text, int n)
{
    size_t at = text.len;

    while (at > 0 && (text.p[at - 1] != '\n' || at == text.len || n-- > 1))
        at--;
    return (struct sv){text.p + at, text.len - at};
}

/* What an event is about. */
static bool is_about(const cJSON *event, const char *kind, const char *name)
{
    const cJSON *object = json_find(event, (const char *[]){"involvedObject", NULL});

    return is(json_str(object, "kind"), kind) && name && is(json_str(object, "name"), name);
}

/* Message, beginning so, of the pod's newest Warning event of this reason; NULL: there is none. Lists are by name, not by time, and the server
 * counts repeated events up. */
static const char *warning(const struct why_facts *f, const char *pod, const char *reason, const char *begins)
{
    const char *newest = "", *message = NULL;
    const cJSON *e;

    cJSON_ArrayForEach(e, f->events)
    {
        const char *when = json_str(e, "lastTimestamp");
        when = when ? when : json_str(e, "eventTime");
        when = when ? when : "";
        const char *words = json_str(e, "message");
        if (!is_about(e, "Pod", pod) || !is(json_str(e, "type"), "Warning") ||
            !is(json_str(e, "reason"), reason) || strcmp(when, newest) < 0 || !words ||
            strncmp(words, begins, strlen(begins)) != 0)
            continue;
        newest = when;
        message = words;
    }
    return message;
}

/* All warnings about the pod, a line each. */
static const char *warnings(const struct why_facts *f, const char *pod, struct arena *a)
{
    const char *all = "";
    const cJSON *e;
    int n = 0;

    cJSON_ArrayForEach(e, f->events)
    {
        const char *message = json_str(e, "message");
        if (n < EVENTS_SHOWN && message && is_about(e, "Pod", pod) && is(json_str(e, "type"), "Warning") &&
            ++n)
            all = arena_printf(a, "%s\n%.2000s", all, message);
    }
    return all;
}

static struct finding about_job(const char *reason, const char *message)
{
    struct finding g = NOTHING;

    g.kind = WHY_JOB;
    g.reason = reason;
    g.message = g.text = message ? message : "";
    return g;
}

/* "pod a on node b: init container prepare: exit code 1": the status has its name in the words of the condition only. */
static const char *init_container(const struct jobstatus *st, struct arena *a)
{
    static const char BEFORE[] = "init container ";
    const char *message = st->conditions[COND_REPLICA_FAILURE].message;
    const char *name = message ? strstr(message, BEFORE) : NULL;

    return name ? arena_strndup(a, name + strlen(BEFORE), strcspn(name + strlen(BEFORE), ":")) : NULL;
}

/* Of a job that ended the last failure is the cause, and what the condition says besides it belongs to it. */
static struct finding of_failure(const struct why_facts *f, struct arena *a)
{
    const struct jobstatus *st = &f->job->status;
    const struct failure *last = st->last_failure;
    const struct condition *failed = &st->conditions[COND_FAILED];
    struct sv log = last_lines(finding_own_log(f->log), TEXT_LOG_LINES);
    struct finding g = NOTHING;

    g.kind = WHY_FAILURE;
    g.reason = last->reason ? last->reason : "";
    g.message = last->message ? last->message : "";
    g.pod = last->pod;
    g.uid = last->uid;
    g.node = last->node && last->node[0] ? last->node : NULL;
    g.rank = last->rank;
    g.exit_code = last->exit_code;
    g.signal = last->signal;
    g.attempt = last->attempt;
    g.since_ms = last->time_ms;
    g.init = is(last->reason, "InitContainerFailed");
    g.container = g.init ? init_container(st, a) : NULL;
    g.text = arena_printf(a, "%s\n%s\n%.*s", g.message,
                          failed->state == COND_TRUE && failed->message ? failed->message : "", (int)log.len,
                          log.p);
    return g;
}

/* A pod that failed, of which the status does not tell yet. */
static struct finding of_ended_pod(const struct why_facts *f, const struct pod *pod, struct arena *a)
{
    const struct verdict v = exitcode_verdict(pod, &f->job->spec.run_policy);
    struct sv log = last_lines(finding_own_log(f->log), TEXT_LOG_LINES);
    struct finding g = NOTHING;

    if (v.class <= VERDICT_SUCCESS)
        return g;
    g.kind = WHY_FAILURE;
    g.judged = false;
    g.reason = arena_strdup(a, v.reason);
    g.message = arena_strdup(a, v.message);
    g.pod = arena_strdup(a, pod->name);
    g.uid = arena_strdup(a, pod->uid);
    g.node = pod->node[0] ? arena_strdup(a, pod->node) : NULL;
    g.container = arena_strdup(a, v.init ? v.init : pod->training.name);
    g.init = v.init != NULL;
    g.rank = v.rank;
    g.exit_code = v.exit_code;
    g.signal = v.signal;
    g.attempt = pod->attempt;
    g.since_ms = v.finished_ms;
    g.text = arena_printf(a, "%s\n%.*s", g.message, (int)log.len, log.p);
    return g;
}

static const char *condition_of(const cJSON *object, const char *type, const char *member)
{
    const cJSON *c;

    cJSON_ArrayForEach(c, json_find(object, (const char *[]){"status", "conditions",
                                                             NULL})) if (is(json_str(c, "type"),
                                                                            type)) return json_str(c, member);
    return NULL;
}

static bool node_is_lost(const struct why_facts *f, const char *node)
{
    const char *ready = condition_of(finding_object(f->nodes, node), "Ready", "status");

    return ready && strcmp(ready, "True") != 0;
}

/* What a container waits for that has no reason of its own: a mount, a sandbox. */
static const char *starting_problem(const struct why_facts *f, const char *pod, const char **ret_reason)
{
    static const char *const REASONS[] = {"FailedAttachVolume", "FailedMount", "FailedCreatePodSandBox",
                                          "FailedScheduling", "NodeNotReady"};

    for (size_t i = 0; i < ARRAY_LEN(REASONS); i++) {
        const char *message = warning(f, pod, REASONS[i], "");
        if (message) {
            *ret_reason = REASONS[i];
            return message;
        }
    }
    return NULL;
}

/* Why this pod waits, as reason and message; false: it just starts. */
static bool waits_for(const struct why_facts *f, const struct pod *pod, const cJSON *object,
                      const char **reason, const char **message)
{
    const bool init = pod->init.state == CONTAINER_WAITING;
    const struct pod_container *c = init ? &pod->init : &pod->training;
    const char *scheduled = condition_of(object, "PodScheduled", "reason");

    *message = NULL;
    if (pod_is_running(pod)) {
        *reason = node_is_lost(f, pod->node) ? "NodeLost" : NULL;
        *message = *reason ? condition_of(finding_object(f->nodes, pod->node), "Ready", "message") : NULL;
    } else if (pod->deletion_ms) {
        *reason = f->now_ms > pod->deletion_ms + NO_STATUS_MS ? "PodStuckTerminating" : NULL;
    } else if (is(scheduled, "SchedulingGated")) {
        *reason = scheduled;
        *message = condition_of(object, "PodScheduled", "message");
    } else if (pod->unschedulable[0]) {
        *reason = "Unschedulable";
        *message = pod->unschedulable;
    } else if (c->state == CONTAINER_WAITING && c->reason[0] && strcmp(c->reason, "ContainerCreating") != 0 &&
               strcmp(c->reason, "PodInitializing") != 0) {
        *reason = c->reason;
        *message =
            is(c->reason, "ImagePullBackOff") ? warning(f, pod->name, "Failed", "Failed to pull") : NULL;
        *message = *message ? *message : c->message; /* which of a back-off says nothing but that */
    } else {
        *reason = NULL;
        *message = starting_problem(f, pod->name, reason);
    }
    return *reason != NULL;
}

/* Why the pod's claims have no volume, in the words of their events. */
static const char *unbound_claims(const struct why_facts *f, struct arena *a)
{
    const char *all = "";
    const cJSON *claim, *e;

    cJSON_ArrayForEach(claim, f->claims)
    {
        const char *name = json_str(metadata(claim), "name"), *message = NULL;
        const char *phase = json_str(json_find(claim, (const char *[]){"status", NULL}), "phase");
        const char *class = json_str(json_find(claim, (const char *[]){"spec", NULL}), "storageClassName");
        if (!name || is(phase, "Bound"))
            continue;
        cJSON_ArrayForEach(e, f->events) if (is_about(e, "PersistentVolumeClaim", name)) message =
            json_str(e, "message");
        all = arena_printf(a, "%s Claim %s (storage class %s)%s%.500s.", all, name,
                           class && class[0] ? class : "none", message ? ": " : " is not bound",
                           message ? message : "");
    }
    return all;
}

static struct finding of_waiting_pod(const struct why_facts *f, const struct pod *pod, const cJSON *object,
                                     struct arena *a)
{
    const bool init = pod->init.state == CONTAINER_WAITING;
    const char *reason, *message;
    struct finding g = NOTHING;

    if (!waits_for(f, pod, object, &reason, &message))
        return g;
    g.kind = WHY_WAITING;
    g.reason = arena_strdup(a, reason);
    /* What the scheduler says of preemption tells nothing more. */
    g.message = message ? message : "";
    const char *preemption = strstr(g.message, " preemption: ");
    g.message =
        arena_strndup(a, g.message, preemption ? (size_t)(preemption - g.message) : strlen(g.message));
    g.pod = arena_strdup(a, pod->name);
    g.uid = arena_strdup(a, pod->uid);
    g.node = pod->node[0] ? arena_strdup(a, pod->node) : NULL;
    g.container = arena_strdup(a, init ? pod->init.name : pod->training.name);
    g.init = init;
    g.attempt = pod->attempt;
    g.since_ms = pod->created_ms;
    const char *lost = condition_of(finding_object(f->nodes, g.node), "Ready", "lastTransitionTime");
    if (is(g.reason, "NodeLost") && lost)
        (void)clock_parse_rfc3339(lost, &g.since_ms);
    g.text = arena_printf(a, "%s%s", g.message, warnings(f, g.pod, a));
    if (strstr(g.text, "PersistentVolumeClaim"))
        g.message = arena_printf(a, "%s%s", g.message, unbound_claims(f, a));
    return g;
}

/* The most telling pod: one that failed, else the first one that waits. */
static struct finding of_pods(const struct why_facts *f, struct arena *a)
{
    struct finding best = NOTHING;
    const cJSON *object;

    cJSON_ArrayForEach(object, f->pods)
    {
        struct err ignored;
        struct pod *pod = pod_decode(object, &ignored);
        if (!pod)
            continue;
        struct finding g = NOTHING;
        if (!strcmp(pod->owner_uid, f->job->uid) && pod->attempt == f->job->status.attempt) {
            g = of_ended_pod(f, pod, a);
            g = g.kind ? g : of_waiting_pod(f, pod, object, a);
        }
        if (g.kind > best.kind)
            best = g;
        else if (g.kind == WHY_WAITING && g.kind == best.kind && is(best.reason, g.reason))
            best.others++;
        pod_free(pod);
    }
    return best;
}

/* Reasons of the job whose message is in the condition Running. */
static struct finding of_reason(const struct why_facts *f, struct arena *a)
{
    static const char *const REFUSED[] = {"PodRefused", "CreateFailed"};
    static const char *const JOB[] = {"NameConflict", "PodStuckTerminating"};
    static const char *const NORMAL[] = {"PodsStarting", "Restarting", "Pausing", "PodsPending", "Resuming"};
    const struct jobstatus *st = &f->job->status;
    const char *word = st->reason ? arena_strndup(a, st->reason, strcspn(st->reason, " ")) : "";
    struct finding g = about_job(word, st->conditions[COND_RUNNING].message);

    for (size_t i = 0; i < ARRAY_LEN(NORMAL); i++)
        if (!word[0] || is(word, NORMAL[i]))
            return NOTHING;
    for (size_t i = 0; i < ARRAY_LEN(REFUSED); i++)
        if (is(word, REFUSED[i]))
            g.kind = WHY_REFUSED;
    for (size_t i = 0; i < ARRAY_LEN(JOB); i++)
        if (is(word, JOB[i]))
            return g;
    if (g.kind == WHY_REFUSED)
        return g;
    g.kind = WHY_WAITING; /* of a pod that could not be read */
    return st->phase == JOB_PENDING ? g : NOTHING;
}

static bool restarts_now(const struct jobstatus *st)
{
    const struct failure *last = st->last_failure;

    return last && st->phase != JOB_RUNNING &&
           (last->attempt == st->attempt - 1 || last->attempt == st->attempt);
}

static struct finding of_live_job(const struct why_facts *f, struct arena *a)
{
    const struct jobstatus *st = &f->job->status;
    struct finding by_reason = of_reason(f, a);
    struct finding g = of_pods(f, a);

    if (by_reason.kind == WHY_JOB || by_reason.kind == WHY_REFUSED)
        return by_reason;
    if (g.kind)
        return g;
    if (!f->pods && by_reason.kind)
        return by_reason;
    return restarts_now(st) ? of_failure(f, a) : NOTHING;
}

static struct finding of_status(const struct why_facts *f, struct arena *a)
{
    const struct jobstatus *st = &f->job->status;
    const struct condition *invalid = &st->conditions[COND_INVALID_SPEC];
    const char *manager = f->job->spec.run_policy.managed_by;

    if (manager && strcmp(manager, TRAINJOB_MANAGED_BY) != 0)
        return about_job("ManagedBy", arena_printf(a, "spec.runPolicy.managedBy is %.200s", manager));
    if (is(st->reason, "Unreadable"))
        return about_job("Unreadable", st->conditions[COND_RUNNING].message);
    if (st->phase == JOB_SUCCEEDED)
        return NOTHING;
    if (st->phase == JOB_FAILED && is(st->reason, "DeadlineExceeded"))
        return about_job("JobDeadline", st->conditions[COND_FAILED].message);
    if (st->phase == JOB_FAILED)
        return st->last_failure ? of_failure(f, a)
                                : about_job(st->reason, st->conditions[COND_FAILED].message);
    if (invalid->state == COND_TRUE)
        return about_job("InvalidSpec", invalid->message);
    if (st->phase == JOB_NONE)
        return f->now_ms - f->job->created_ms < NO_STATUS_MS ? NOTHING : about_job("NoStatus", "");
    if (st->phase == JOB_PAUSED || is(st->reason, JOBSTATUS_PAUSING))
        return NOTHING;
    return of_live_job(f, a);
}

struct finding finding_of(const struct why_facts *f, struct arena *a)
{
    const struct jobstatus *st = &f->job->status;
    struct finding g = of_status(f, a);

    if (!g.since_ms && st->completion_ms)
        g.since_ms = st->completion_ms;
    else if (!g.since_ms && g.kind == WHY_REFUSED)
        g.since_ms = st->conditions[COND_RUNNING].transition_ms;
    if (!g.since_ms)
        g.since_ms = f->job->created_ms;
    return g;
}
