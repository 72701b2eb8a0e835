/* answer.c - put a finding and its cause into sentences. */
#include "cli/why/answer.h"
#include "common/clock.h"
#include "operator/plan/avoid.h"
#include "operator/plan/rootcause.h"

#include <math.h>
#include <string.h>

/* ---- running: how far; pending: what is being waited for; paused; succeeded */

static const char *progress(const struct why_facts *f, struct arena *a)
{
    const struct jobprogress *p = &f->job->status.progress;
    const char *text = "";

    if (!p->time_ms)
        return "";
    if (p->percent >= 0)
        text = arena_printf(a, "%lld%%, ", (long long)p->percent);
    if (p->step >= 0)
        text = arena_printf(a, p->total_steps >= 0 ? "%sstep %lld of %lld, " : "%sstep %lld, ", text,
                            (long long)p->step, (long long)p->total_steps);
    if (p->epoch >= 0)
        text = arena_printf(a, p->total_epochs >= 0 ? "%sepoch %lld of %lld, " : "%sepoch %lld, ", text,
                            (long long)p->epoch, (long long)p->total_epochs);
    if (!isnan(p->loss))
        text = arena_printf(a, "%sloss %.4g, ", text, p->loss);
    if (p->eta_s >= 0)
        text = arena_printf(a, "%s%s to go, ", text, next_span(p->eta_s * 1000, a));
    return arena_printf(a, "%sreported %s ago", text, next_span(f->now_ms - p->time_ms, a));
}

static void running(struct answer *w, const struct why_facts *f, struct arena *a)
{
    const struct jobstatus *st = &f->job->status;
    const int64_t since = st->conditions[COND_RUNNING].transition_ms;

    w->summary = arena_printf(a, "Running for %s: all is well, %s pods run", next_span(f->now_ms - since, a),
                              st->ready ? st->ready : "all");
    w->detail = progress(f, a);
    w->todo = arena_printf(a, "Nothing. kubectl ptj logs %s -n %s%s shows what it prints.", f->job->name,
                           f->job->ns, f->options);
}

static void pending(struct answer *w, const struct why_facts *f, struct arena *a)
{
    const struct jobstatus *st = &f->job->status;
    const cJSON *object;

    cJSON_ArrayForEach(object, f->pods)
    {
        struct err ignored;
        struct pod *p = pod_decode(object, NULL, &ignored);
        if (p && !w->detail[0] && !strcmp(p->owner_uid, f->job->uid) && !pod_is_running(p) && !pod_ended(p))
            w->detail = arena_printf(a, "pod %s%s%s: %s", p->name, p->node[0] ? " on node " : "", p->node,
                                     p->training.reason[0] ? p->training.reason
                                     : p->node[0]          ? "its containers are being started"
                                                           : "waits for a node");
        free(p);
    }
    w->summary = arena_printf(a, "%s for %s: the pods are being started, %s run so far",
                              st->phase == JOB_NONE ? "New" : job_phase_name(st->phase),
                              next_span(f->now_ms - f->job->created_ms, a), st->ready ? st->ready : "none");
    w->todo = "Wait, and run why again if the job does not start.";
}

static void healthy(struct answer *w, const struct why_facts *f, struct arena *a)
{
    const struct jobstatus *st = &f->job->status;

    if (st->phase == JOB_SUCCEEDED) {
        w->summary =
            arena_printf(a, "Succeeded %s ago, after %s", next_span(f->now_ms - st->completion_ms, a),
                         next_span(st->completion_ms - st->start_ms, a));
        w->todo = "Nothing.";
    } else if (st->phase == JOB_PAUSED || jobstatus_pause_begun(st)) {
        w->summary = arena_printf(a, "%s: the job is suspended, by spec.%s",
                                  st->phase == JOB_PAUSED ? "Paused" : "Pausing: pods are being deleted",
                                  f->job->spec.resume.enabled ? "runMode.pause.enabled" : "suspend");
        w->todo = arena_printf(a, "kubectl ptj resume %s -n %s%s", f->job->name, f->job->ns, f->options);
    } else if (st->phase == JOB_RUNNING) {
        running(w, f, a);
    } else {
        pending(w, f, a);
    }
}

/* ---- find PodDisruptionBudgets that read the number of a job's pods from /scale and get 0 */

/* Whether all labels are the pod's; a selector of none selects every pod. */
static bool selects(const cJSON *selector, const cJSON *pod)
{
    const cJSON *want;

    cJSON_ArrayForEach(want, json_child(selector, "matchLabels"))
    {
        if (!same_text(cJSON_GetStringValue(want),
                       json_str(json_child(json_child(pod, "metadata"), "labels"), want->string)))
            return false;
    }
    /* What an expression selects is not judged here. */
    return selector && !cJSON_GetArraySize(json_child(selector, "matchExpressions"));
}

/* A number in minAvailable is compared with the pods there are; all else is a part of those that should be. */
static bool asks_scale(const cJSON *budget)
{
    const cJSON *spec = json_child(budget, "spec");

    return json_child(spec, "maxUnavailable") || cJSON_IsString(json_child(spec, "minAvailable"));
}

/* The name of one that lets no node with a pod of the job be drained, since it finds no pod that it should count. NULL: there is none. */
static const char *budget_of_none(const struct why_facts *f)
{
    const cJSON *budget, *pod;

    cJSON_ArrayForEach(budget, f->budgets)
    {
        const cJSON *status = json_child(budget, "status");
        cJSON_ArrayForEach(pod, f->pods)
        {
            if (json_i64(status, "expectedPods", -1) == 0 &&
                json_i64(status, "disruptionsAllowed", -1) == 0 && asks_scale(budget) &&
                selects(json_child(json_child(budget, "spec"), "selector"), pod))
                return json_meta(budget, "name");
        }
    }
    return NULL;
}

/* ---- the answer */

static const cJSON *template_container(const struct trainjob *job, const char *pod)
{
    const size_t len = strlen(job->name);

    for (int t = 0; t < job->spec.n_replica_specs; t++) {
        const struct replica_spec *r = &job->spec.replica_specs[t];
        const size_t type_len = strlen(r->type);
        if (pod && !strncmp(pod, job->name, len) && pod[len] == '-' &&
            !strncmp(pod + len + 1, r->type, type_len) && pod[len + 1 + type_len] == '-' &&
            !strchr(pod + len + 2 + type_len, '-'))
            return trainjob_training_container(json_child(r->template, "spec"));
    }
    return NULL;
}

static const char *limit_of(const struct trainjob *job, const char *pod, struct arena *a)
{
    static const char *const LIMITS[] = {"resources", "limits", NULL};
    const char *memory = json_str(json_find(template_container(job, pod), LIMITS), "memory");

    return memory ? arena_printf(a, " (%.40s)", memory) : "";
}

/* ": kubectl describe node NODE", or nothing of a node that is not known. */
static const char *node_command(const struct why_facts *f, const struct finding *g, const char *verb,
                                struct arena *a)
{
    return g->node ? arena_printf(a, ": kubectl %s node %s%s", verb, g->node, f->options) : "";
}

/* Fill the {names} of a cause's text in. */
static const char *fill(const struct why_facts *f, const struct finding *g, const struct cause *c,
                        const char *text, struct arena *a)
{
    const char *describe = node_command(f, g, "describe", a), *remove = node_command(f, g, "delete", a);
    const struct {
        const char *name, *value;
    } names[] = {
        {"{job}", f->job->name},
        {"{ns}", f->job->ns},
        {"{pod}", g->pod ? g->pod : "POD"},
        {"{ node}", g->node ? arena_printf(a, " %s", g->node) : ""},
        {"{describe}", describe},
        {"{describe.}", g->node ? describe : "."},
        {"{delete}", remove},
        {"{delete.}", g->node ? remove : "."},
        {"{container}", g->container ? g->container : "CONTAINER"},
        {"{ container}", g->container ? arena_printf(a, " %s", g->container) : ""},
        {"{rank}", g->rank >= 0 ? arena_printf(a, "rank %d", g->rank) : "a rank"},
        {"{code}", arena_printf(a, "%d", g->exit_code)},
        {"{limit}", limit_of(f->job, g->pod, a)},
        {"{subject}", cause_subject(c, g, a)},
        {"{with}", f->options},
        {"{edit}",
         arena_printf(a,
                      "A template that is corrected before all pods ran is taken at once: kubectl edit "
                      "ptj %s -n %s%s",
                      f->job->name, f->job->ns, f->options)},
    };
    const char *out = "";

    while (*text) {
        const size_t plain = strcspn(text, "{");
        size_t i = 0;
        out = arena_printf(a, "%s%.*s", out, (int)plain, text);
        text += plain;
        while (i < ARRAY_LEN(names) && strncmp(text, names[i].name, strlen(names[i].name)) != 0)
            i++;
        if (*text)
            out = arena_printf(a, "%s%s", out, i < ARRAY_LEN(names) ? names[i].value : "{");
        text += i < ARRAY_LEN(names) ? strlen(names[i].name) : *text != '\0';
    }
    return out;
}

static void add_note(struct answer *w, const char *note)
{
    if (w->n_notes < ANSWER_NOTES_MAX)
        w->notes[w->n_notes++] = note;
}

/* The pods have the hash of their template as a label; the operator's event about it is gone after an hour. */
static void add_template_note(struct answer *w, const struct why_facts *f, struct arena *a)
{
    bool other = false;
    const cJSON *pod;

    cJSON_ArrayForEach(pod, f->pods)
    {
        const cJSON *meta = json_child(pod, "metadata");
        const char *hash = json_str(json_child(meta, "labels"), LABEL_TEMPLATE_HASH);
        other |=
            hash && strcmp(hash, f->job->spec.hash) != 0 && !strcmp(api_controller_uid(meta), f->job->uid);
    }
    if (other && jobstatus_finished(&f->job->status))
        add_note(w, "the changed template has no effect: the job has ended.");
    else if (other && f->job->status.phase == JOB_RUNNING)
        add_note(w, arena_printf(a,
                                 "the pods' template was changed: that takes effect with the next attempt. "
                                 "kubectl ptj suspend %s -n %s%s, then resume, begins one.",
                                 f->job->name, f->job->ns, f->options));
}

/* With the failures that accuse the node, as far as the status has them. */
static void add_avoided_note(struct answer *w, const struct why_facts *f, const struct avoided_node *n,
                             struct arena *a)
{
    const struct jobstatus *st = &f->job->status;
    const char *text, *begin = "; it broke the job in";
    char since[CLOCK_RFC3339_BYTES];

    clock_rfc3339(n->since_ms, false, since);
    text = arena_printf(a,
                        n->dropped ? "no other node took the pods: they may use node %.253s again since %s"
                                   : "new pods avoid node %.253s for an hour since %s",
                        n->node, since);
    for (int i = 0; i < st->n_failures; i++) {
        const struct failure *e = &st->failures[i];
        if (!avoid_is_evidence(e, n->node))
            continue;
        text = arena_printf(a, "%s%s attempt %d (%s)", text, begin, e->attempt, e->reason);
        begin = ",";
    }
    if (n->since_ms + AVOID_MS > f->now_ms && !jobstatus_finished(st))
        add_note(w, text);
}

static void add_notes(struct answer *w, const struct why_facts *f, struct arena *a)
{
    const struct jobstatus *st = &f->job->status;
    const char *budget = budget_of_none(f);

    if (st->phase != JOB_NONE && st->observed_generation < f->job->generation)
        add_note(w, "the operator has not seen the newest spec yet: this is about an older one.");
    if (f->pending)
        add_note(w,
                 arena_printf(
                     a, "place %lld of all that wait in the ClusterQueue, %lld of those in LocalQueue %.63s.",
                     (long long)json_i64(f->pending, "positionInClusterQueue", -1) + 1,
                     (long long)json_i64(f->pending, "positionInLocalQueue", -1) + 1, f->job->queue.name));
    add_template_note(w, f, a);
    for (int i = 0; i < st->n_avoided; i++)
        add_avoided_note(w, f, &st->avoided[i], a);
    if (budget)
        add_note(w,
                 arena_printf(
                     a,
                     "PodDisruptionBudget %.253s expects 0 pods, and so no node with a pod of the job can be "
                     "drained: set spec.elastic.expectedReplicas to %d, or give the budget a number in "
                     "minAvailable.",
                     budget, f->job->spec.pods));
}

static const char *summary(const struct why_facts *f, const struct answer *w, struct arena *a)
{
    const char *text = fill(f, &w->finding, w->cause, w->cause->headline, a);
    const char *reason = f->job->status.reason;

    if (w->subject[0])
        text = arena_printf(a, "%s: %s", text, w->subject);
    if (reason && strstr(reason, "LimitExceeded")) /* of backoffLimit, disruptions, admissions */
        text = arena_printf(a, "%s, at last: %s", reason, text);
    return text;
}

/* The last lines of the log, or those of the failure's own message when it has several. */
static const char *log_of(const struct finding *g, struct arena *a)
{
    const char *text =
        g->log && !g->log[0] && strchr(g->message, '\n') ? rootcause_log(g->message, g->rank, a) : g->log;

    return text ? finding_tail(text, ANSWER_LOG_LINES) : "";
}

struct answer answer_of(const struct why_facts *f, struct arena *a)
{
    struct answer w = {.causes = causes_read(a),
                       .finding = finding_of(f, a),
                       .subject = "",
                       .detail = "",
                       .operator_next = "",
                       .then = "",
                       .log = ""};
    const struct finding *g = &w.finding;

    add_notes(&w, f, a);
    if (g->kind == WHY_HEALTHY) {
        healthy(&w, f, a);
        return w;
    }
    w.cause = cause_of(w.causes, g, a);
    w.subject = cause_subject(w.cause, g, a);
    w.summary = summary(f, &w, a);
    w.operator_next = fill(f, g, w.cause, next_of(f, g, w.cause, a), a);
    w.todo = fill(f, g, w.cause, w.cause->todo, a);
    w.log = log_of(g, a);
    if (jobstatus_finished(&f->job->status))
        w.then = arena_printf(a, "Then kubectl delete ptj %s -n %s%s, and create the job again.",
                              f->job->name, f->job->ns, f->options);
    return w;
}
