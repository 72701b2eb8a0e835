/* screen.c - lay a finding out: the parts that must be there first, then as much of the log as there is room. */
#include "cli/why/screen.h"

#include "cli/why/budget.h"
#include "cli/why/fine.h"
#include "cli/why/lines.h"
#include "cli/why/next.h"
#include "operator/plan/rootcause.h"

#include <string.h>

enum {
    MESSAGE_ROWS = 4,
    GAP_ROWS = 2,
    LOG_LINES_ALL = 80,
};

static const cJSON *template_container(const struct trainjob *job, const char *pod)
{
    const size_t len = strlen(job->name);

    for (int t = 0; t < job->spec.n_replica_specs; t++) {
        const struct replica_spec *r = &job->spec.replica_specs[t];
        const size_t type_len = strlen(r->type);
        if (pod && !strncmp(pod, job->name, len) && pod[len] == '-' &&
            !strncmp(pod + len + 1, r->type, type_len) && pod[len + 1 + type_len] == '-' &&
            !strchr(pod + len + 2 + type_len, '-'))
            return trainjob_training_container(json_find(r->template, (const char *[]){"spec", NULL}));
    }
    return NULL;
}

static const char *limit_of(const struct trainjob *job, const char *pod, struct arena *a)
{
    static const char *const LIMITS[] = {"resources", "limits", NULL};
    const char *memory = json_str(json_find(template_container(job, pod), LIMITS), "memory");

    return memory ? arena_printf(a, " (%.40s)", memory) : "";
}

/* Fill the {names} of a cause's text in. */
static const char *fill(const struct why_facts *f, const struct finding *g, const struct cause *c,
                        const char *text, struct arena *a)
{
    const struct {
        const char *name, *value;
    } names[] = {
        {"{job}", f->job->name},
        {"{ns}", f->job->ns},
        {"{pod}", g->pod ? g->pod : "POD"},
        {"{node}", g->node ? g->node : "NODE"},
        {"{container}", g->container ? g->container : ""},
        {"{rank}", g->rank >= 0 ? arena_printf(a, "rank %d", g->rank) : "a rank"},
        {"{code}", arena_printf(a, "%d", g->exit_code)},
        {"{limit}", limit_of(f->job, g->pod, a)},
        {"{subject}", cause_subject(c, g, a)},
        {"{with}", f->options},
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

static const char *where(const struct why_facts *f, const struct finding *g, struct arena *a)
{
    const bool ago = g->kind == WHY_FAILURE || jobstatus_finished(&f->job->status);
    const char *at = "";

    if (g->pod)
        at = arena_printf(a, "pod %s, ", g->pod);
    if (g->rank >= 0)
        at = arena_printf(a, "%srank %d, ", at, g->rank);
    if (g->node)
        at = arena_printf(a, "%snode %s, ", at, g->node);
    if (g->init && g->container)
        at = arena_printf(a, "%sinit container %s, ", at, g->container);
    if (g->exit_code >= 0)
        at = arena_printf(a, "%sexit code %d", at, g->exit_code);
    if (g->exit_code >= 0)
        at = g->signal ? arena_printf(a, "%s (signal %d), ", at, g->signal) : arena_printf(a, "%s, ", at);
    if (g->attempt > 0 && g->kind == WHY_FAILURE)
        at = arena_printf(a, "%sattempt %d, ", at, g->attempt);
    at = arena_printf(a, "%s%s%s%s", at, ago ? "" : "for ", next_span(f->now_ms - g->since_ms, a),
                      ago ? " ago" : "");
    return g->others ? arena_printf(a, "%s; and %d more", at, g->others) : at;
}

static void add_head(struct lines *l, const struct why_facts *f, const struct finding *g,
                     const struct cause *c, bool all)
{
    const char *subject = cause_subject(c, g, l->a), *message = g->message;
    const char *state = job_phase_name(f->job->status.phase), *reason = f->job->status.reason;
    const char *headline = fill(f, g, c, c->headline, l->a);

    if (subject[0])
        headline = arena_printf(l->a, "%s: %s", headline, subject);
    if (reason && strstr(reason, "LimitExceeded")) /* of backoffLimit, disruptions, admissions */
        headline = arena_printf(l->a, "%s, at last: %s", reason, headline);
    lines_wrapped(l, arena_printf(l->a, "%s: ", state[0] ? state : "New"), headline, 2);
    lines_wrapped(l, "  ", where(f, g, l->a), all ? 0 : 2);
    if (g->kind == WHY_FAILURE)
        message = g->line;
    if (message[0])
        lines_wrapped(l, "  ", message, all ? 0 : MESSAGE_ROWS);
}

/* Earlier failures of the job, the newest first: how often which. */
static void add_before(struct lines *l, const struct why_facts *f, const struct finding *g, bool all)
{
    const struct jobstatus *st = &f->job->status;
    const char *text = "";
    int n = 0;

    for (int i = st->n_failures - 1; i >= 0; i--) {
        const struct failure *e = &st->failures[i];
        const bool this = g->kind == WHY_FAILURE && e->time_ms == g->since_ms && e->attempt == g->attempt;
        if (this || (n >= 3 && !all))
            continue;
        text = arena_printf(l->a, "%s%sattempt %d %s on %s %s ago", text, n++ ? "; " : "", e->attempt,
                            e->reason ? e->reason : "failed", e->pod ? e->pod : "a pod",
                            next_span(f->now_ms - e->time_ms, l->a));
    }
    if (n)
        lines_wrapped(l, "Before:   ", text, all ? 0 : 2);
}

/* What the events say, each once. */
static void add_events(struct lines *l, const struct why_facts *f)
{
    const cJSON *e;

    if (cJSON_GetArraySize(f->events))
        lines_add(l, "");
    cJSON_ArrayForEach(e, f->events)
    {
        const char *reason = json_str(e, "reason"), *message = json_str(e, "message");
        const char *name = json_str(json_find(e, (const char *[]){"involvedObject", NULL}), "name");
        lines_wrapped(l, "Event:    ",
                      arena_printf(l->a, "%s: %s: %s", name ? name : "-", reason ? reason : "-",
                                   message ? message : ""),
                      0);
    }
}

/* The last lines of the log, or those of the failure's own message when it has several. */
static void add_log(struct lines *l, const struct finding *g, int rows)
{
    const char *text =
        g->log && !g->log[0] && strchr(g->message, '\n') ? rootcause_log(g->message, g->rank, l->a) : g->log;
    struct sv rest, line;

    if (!text || !text[0] || rows < 3)
        return;
    lines_add(l, "");
    lines_cut(l, "",
              sv_from(arena_printf(l->a, "Last lines%s%s:", g->pod ? " of " : "", g->pod ? g->pod : "")));
    for (rest = sv_from(finding_tail(text, rows - 2)); rest.len && sv_next(&rest, '\n', &line);)
        lines_cut(l, "  ", line);
}

/* The hash on the pods tells it; the operator's event is gone after an hour. */
static void add_template_note(struct lines *l, const struct why_facts *f)
{
    const bool ended = jobstatus_finished(&f->job->status);
    bool other = false;
    const cJSON *pod;

    cJSON_ArrayForEach(pod, f->pods)
    {
        const cJSON *meta = json_find(pod, (const char *[]){"metadata", NULL});
        const char *hash = json_str(json_find(meta, (const char *[]){"labels", NULL}), LABEL_TEMPLATE_HASH);
        other |=
            hash && strcmp(hash, f->job->spec.hash) != 0 && !strcmp(api_controller_uid(meta), f->job->uid);
    }
    if (other && ended)
        lines_wrapped(l, "Note:     ", "the changed template has no effect: the job has ended.", 0);
    else if (other && f->job->status.phase == JOB_RUNNING)
        lines_wrapped(l, "Note:     ",
                      arena_printf(l->a,
                                   "the pods' template was changed: that takes effect with the next attempt. "
                                   "kubectl ptj suspend %s -n %s%s, then resume, begins one.",
                                   f->job->name, f->job->ns, f->options),
                      0);
}

static void add_note(struct lines *l, const struct why_facts *f)
{
    const struct jobstatus *st = &f->job->status;

    if (st->phase != JOB_NONE && st->observed_generation < f->job->generation)
        lines_wrapped(
            l, "Note:     ", "the operator has not seen the newest spec yet: this is about an older one.", 0);
    add_template_note(l, f);
    const char *budget = budget_of_none(f);
    if (budget)
        lines_wrapped(
            l, "Note:     ",
            arena_printf(
                l->a,
                "PodDisruptionBudget %.253s expects 0 pods, and so no node with a pod of the job can be "
                "drained: set spec.elastic.expectedReplicas to %d, or give the budget a number in "
                "minAvailable.",
                budget, f->job->spec.pods),
            0);
}

static void add_tail(struct lines *l, const struct why_facts *f, const struct finding *g,
                     const struct cause *c, bool all)
{
    lines_add(l, "");
    add_before(l, f, g, all);
    for (int i = 0; i < f->n_gaps && (all || i < GAP_ROWS); i++)
        lines_wrapped(l, "Not read: ", f->gaps[i], all ? 0 : 1);
    add_note(l, f);
    lines_wrapped(l, "Operator: ", fill(f, g, c, next_of(f, g, c, l->a), l->a), 0);
    lines_wrapped(l, "Do:       ", fill(f, g, c, c->todo, l->a), 0);
    if (jobstatus_finished(&f->job->status))
        lines_wrapped(l, "          ",
                      arena_printf(l->a, "Then kubectl delete ptj %s -n %s%s, and apply the corrected job.",
                                   f->job->name, f->job->ns, f->options),
                      0);
}

int screen_print(const struct why_facts *f, struct screen_size size, struct buf *out, struct err *err)
{
    cleanup_arena struct arena a = {0};
    struct lines *head = arena_new(&a, struct lines), *tail = arena_new(&a, struct lines);
    const struct finding g = finding_of(f, &a);
    const bool all = size.rows == 0;

    *head = *tail = (struct lines){.a = &a, .columns = size.columns};
    if (g.kind == WHY_FINE) {
        const struct fine fine = fine_of(f, &a);
        lines_wrapped(head, "", fine.state, 0);
        if (fine.detail[0])
            lines_wrapped(head, "  ", fine.detail, 0);
        add_before(head, f, &g, all);
        add_note(head, f);
        for (int i = 0; i < f->n_gaps && (all || i < GAP_ROWS); i++)
            lines_wrapped(head, "Not read: ", f->gaps[i], all ? 0 : 1);
        lines_wrapped(head, "Do:       ", fine.todo, 0);
        return lines_print(head, out, err);
    }
    const struct cause *c = cause_of(&g);
    add_head(head, f, &g, c, all);
    add_tail(tail, f, &g, c, all);
    add_log(head, &g, all ? LOG_LINES_ALL : size.rows - 1 - head->n - tail->n);
    if (size.events)
        add_events(head, f);
    return lines_print(head, out, err) < 0 ? -1 : lines_print(tail, out, err);
}
