/* finding.c - look through status, pods, events and nodes for what keeps the job from going on. */
#include "cli/why/finding.h"

#include "operator/plan/exitcode.h"
#include "operator/plan/rootcause.h"

#include <stddef.h>
#include <string.h>

enum { NO_STATUS_MS = 10000, TEXT_LOG_LINES = 5 };

const struct finding FINDING_NONE = {
    .message = "", .text = "", .rank = -1, .exit_code = -1, .attempt = -1, .judged = true};

const cJSON *finding_object(const cJSON *list, const char *name)
{
    const cJSON *object;

    cJSON_ArrayForEach(object, list) if (name && same_text(json_meta(object, "name"), name)) return object;
    return NULL;
}

const char *finding_tail(const char *text, int n)
{
    const char *end = text + strlen(text), *at = end;

    while (at > text && (at == end || at[-1] != '\n' || --n > 0))
        at--;
    return at;
}

/* The kubelet says so when it ends a container for its probe. A probe that failed before another end is not the cause. */
static void set_probe(struct finding *g, const struct why_facts *f, const char *container, struct arena *a)
{
    static const char *const PROBES[][3] = {
        {"LivenessProbeFailed", "failed liveness probe", "Liveness probe "},
        {"StartupProbeFailed", "failed startup probe", "Startup probe "}};
    struct finding of = *g;

    of.container = container;
    const char *killing = podwait_event(f, &of, "Killing", "Container ");
    for (size_t i = 0; killing && i < ARRAY_LEN(PROBES); i++) {
        const char *words = podwait_event(f, &of, "Unhealthy", PROBES[i][2]);
        if (!strstr(killing, PROBES[i][1]))
            continue;
        g->reason = PROBES[i][0];
        g->line = arena_strdup(a, words ? words : killing);
    }
}

/* Only what ended by itself or by a signal may have been ended for a probe. */
static void set_probes(struct finding *g, const struct why_facts *f, struct arena *a)
{
    static const char *const SPEC[] = {"spec", NULL};

    if (!g->pod || g->exit_code < 0 || exitcode_is_disruption(g->reason) || same_text(g->reason, "OOMKilled"))
        return;
    for (int t = 0; t < f->job->spec.n_replica_specs; t++) {
        const cJSON *spec = json_find(f->job->spec.replica_specs[t].template, SPEC);
        const char *name = g->container ? g->container : json_str(trainjob_training_container(spec), "name");
        if (name)
            set_probe(g, f, name, a);
    }
}

/* Whether the text ends soon after the exception whose traceback begins here. A prefix, as of a rank, stands before each line. */
static bool ends_soon(const char *text, const char *traceback)
{
    struct sv rest = sv_from(traceback), line;
    size_t prefix = 0;

    while (traceback - prefix > text && traceback[-1 - (ptrdiff_t)prefix] != '\n')
        prefix++;
    (void)sv_next(&rest, '\n', &line);
    while (sv_next(&rest, '\n', &line) && line.len > prefix && line.p[prefix] == ' ')
        ;
    return !rest.p || finding_tail(rest.p, TEXT_LOG_LINES) == rest.p;
}

/* The end of a text that may show why the program ended: the exception with which it ends, with those that led to it, or the last
 * lines. What stands before may be a warning, or an exception that was caught. */
static const char *last_words(const char *text)
{
    static const char BEGIN[] = "Traceback (most recent call last)";
    static const char *const LEADS_TO[] = {"During handling of the above exception",
                                           "The above exception was the direct cause"};
    const char *begin = NULL, *before = NULL;

    for (const char *at = text; (at = strstr(at, BEGIN)); at += strlen(BEGIN)) {
        bool led = false;
        for (size_t i = 0; before && i < ARRAY_LEN(LEADS_TO); i++) {
            const char *words = strstr(before, LEADS_TO[i]);
            led |= words && words < at;
        }
        begin = led ? begin : at;
        before = at;
    }
    return begin && ends_soon(text, before) ? begin : finding_tail(text, TEXT_LOG_LINES);
}

/* The text in which the cause of a failure is looked for, without what PyTorch's launcher reports of itself. */
static void set_text(struct finding *g, const struct why_facts *f, const char *condition, struct arena *a)
{
    g->log = rootcause_log(f->log ? f->log : "", g->rank, a);
    g->line = rootcause_line(g->message, g->log, a);
    g->text = arena_printf(a, "%s\n%s\n%s\n%s", g->line, condition,
                           last_words(rootcause_log(g->message, g->rank, a)), last_words(g->log));
    set_probes(g, f, a);
}

static struct finding about_job(const char *reason, const char *message)
{
    struct finding g = FINDING_NONE;

    g.kind = WHY_JOB;
    g.reason = reason ? reason : "";
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

/* Of a job that ended the last failure is the cause, and the message of the condition belongs to it. */
static struct finding of_failure(const struct why_facts *f, struct arena *a)
{
    const struct jobstatus *st = &f->job->status;
    const struct failure *last = st->last_failure;
    const struct condition *failed = &st->conditions[COND_FAILED];
    struct finding g = FINDING_NONE;

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
    g.init = same_text(last->reason, "InitContainerFailed");
    g.container = g.init ? init_container(st, a) : NULL;
    set_text(&g, f, failed->state == COND_TRUE && failed->message ? failed->message : "", a);
    return g;
}

/* A pod that failed, which the status does not show yet. */
static struct finding of_ended_pod(const struct why_facts *f, const struct pod *pod, struct arena *a)
{
    const struct verdict v = exitcode_verdict(pod, &f->job->spec.run_policy);
    struct finding g = FINDING_NONE;

    /* The operator may have deleted one that is being deleted; the status shows others soon. */
    if (v.class <= VERDICT_SUCCESS || (pod->deletion_ms && !pod->disruption[0]))
        return g;
    g.kind = WHY_FAILURE;
    g.judged = false;
    g.reason = arena_strdup(a, v.reason);
    g.message = arena_strdup(a, rootcause_text(v.message, a));
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
    set_text(&g, f, "", a);
    return g;
}

struct finding finding_of_pod(const struct why_facts *f, const struct pod *pod, const cJSON *object,
                              struct arena *a)
{
    const bool now = pod->attempt == f->job->status.attempt;
    struct finding g = FINDING_NONE;

    if (strcmp(pod->owner_uid, f->job->uid) != 0)
        return g;
    if (now)
        g = of_ended_pod(f, pod, a);
    return (now || pod->deletion_ms) && !g.kind ? podwait_of(f, pod, object, a) : g;
}

/* The pod that explains most: one that failed, else the first one that waits. */
static struct finding of_pods(const struct why_facts *f, struct arena *a)
{
    struct finding best = FINDING_NONE;
    const cJSON *object;

    cJSON_ArrayForEach(object, f->pods)
    {
        struct err ignored;
        struct pod *pod = pod_decode(object, NULL, &ignored);
        if (!pod)
            continue;
        const struct finding g = finding_of_pod(f, pod, object, a);
        if (g.kind > best.kind)
            best = g;
        else if (g.kind == WHY_WAITING && g.kind == best.kind && same_text(best.reason, g.reason))
            best.others++;
        free(pod);
    }
    return best;
}

/* Reasons of the job whose message is in the condition Running. */
static struct finding of_reason(const struct why_facts *f, struct arena *a)
{
    static const char *const REFUSED[] = {"PodRefused", "CreateFailed", "WorkloadRefused"};
    static const char *const OF_JOB[] = {"NameConflict", "Queued", "Evicted", "FailedToStart"};
    static const char *const NORMAL[] = {"PodsStarting", "Restarting", "Pausing", "PodsPending", "Resuming"};
    const struct jobstatus *st = &f->job->status;
    const char *word = st->reason ? arena_strndup(a, st->reason, strcspn(st->reason, " ")) : "";
    struct finding g = about_job(word, st->conditions[COND_RUNNING].message);

    for (size_t i = 0; i < ARRAY_LEN(NORMAL); i++)
        if (!word[0] || same_text(word, NORMAL[i]))
            return FINDING_NONE;
    for (size_t i = 0; i < ARRAY_LEN(REFUSED); i++)
        if (same_text(word, REFUSED[i]))
            g.kind = WHY_REFUSED;
    for (size_t i = 0; i < ARRAY_LEN(OF_JOB); i++)
        if (g.kind == WHY_REFUSED || same_text(word, OF_JOB[i]))
            return g;
    g.kind = WHY_WAITING; /* of a pod that could not be read */
    return st->phase == JOB_PENDING ? g : FINDING_NONE;
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
    return restarts_now(st) ? of_failure(f, a) : FINDING_NONE;
}

static struct finding of_status(const struct why_facts *f, struct arena *a)
{
    const struct jobstatus *st = &f->job->status;
    const struct condition *invalid = &st->conditions[COND_INVALID_SPEC];
    const char *manager = f->job->spec.run_policy.managed_by;

    bool copied = manager && strcmp(manager, TRAINJOB_MULTIKUEUE) == 0 && jobstatus_finished(st);
    if (manager && strcmp(manager, TRAINJOB_MANAGED_BY) != 0 && !copied)
        return about_job("ManagedBy", arena_printf(a, "managedBy is %.200s", manager));
    if (same_text(st->reason, "Unreadable"))
        return about_job("Unreadable", st->conditions[COND_RUNNING].message);
    if (st->phase == JOB_SUCCEEDED)
        return FINDING_NONE;
    if (st->phase == JOB_FAILED && same_text(st->reason, "DeadlineExceeded"))
        return about_job("JobDeadline", st->conditions[COND_FAILED].message);
    if (st->phase == JOB_FAILED)
        return st->last_failure ? of_failure(f, a)
                                : about_job(st->reason, st->conditions[COND_FAILED].message);
    if (invalid->state == COND_TRUE)
        return about_job("InvalidSpec", invalid->message);
    if (st->phase == JOB_NONE)
        return f->now_ms - f->job->created_ms < NO_STATUS_MS ? FINDING_NONE : about_job("NoStatus", "");
    if (st->phase == JOB_PAUSED || same_text(st->reason, JOBSTATUS_PAUSING))
        return FINDING_NONE;
    return of_live_job(f, a);
}

struct finding finding_of(const struct why_facts *f, struct arena *a)
{
    const struct jobstatus *st = &f->job->status;
    struct finding g = of_status(f, a);

    if (!g.since_ms && st->completion_ms)
        g.since_ms = st->completion_ms;
    else if (!g.since_ms && (g.kind == WHY_REFUSED || same_text(g.reason, "Queued")))
        g.since_ms = st->conditions[COND_RUNNING].transition_ms;
    if (!g.since_ms)
        g.since_ms = f->job->created_ms;
    return g;
}
