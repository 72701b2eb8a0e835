/* screen.c - lay an answer out: the parts that must be there first, then as much of the log as there is room. */
#include "cli/why/screen.h"
#include "cli/shown.h"
#include "cli/why/answer.h"
#include "common/arena.h"
#include "common/buf.h"
#include "common/cleanup.h"
#include "common/sv.h"
#include "operator/plan/rootcause.h"

#include <string.h>

/* ---- wrap and cut what others wrote to the columns of a terminal */

enum { LINES_MAX = 400 };

struct lines {
    struct arena *a;
    int columns; /* 0: any number */
    const char *at[LINES_MAX];
    int n;
};

enum { TEXT_BYTES = 4 << 10 }; /* of one line before it is wrapped */

/* A line as it is: the caller's own words. */
static void lines_add(struct lines *l, const char *line)
{
    if (l->n < LINES_MAX)
        l->at[l->n++] = line;
}

/* The text, safe for a terminal. */
static const char *safe(struct arena *a, struct sv text)
{
    char *shown = arena_alloc(a, TEXT_BYTES);

    shown_text(shown, TEXT_BYTES, arena_strndup(a, text.p, text.len));
    return shown;
}

/* How much of the text goes into one line: to the last space that fits, if there is any. */
static size_t line_length(struct sv text, size_t columns)
{
    const size_t fit = shown_fit(text, columns);
    size_t at = fit;

    if (fit == text.len || text.p[fit] == ' ')
        return fit;
    while (at > 0 && text.p[at - 1] != ' ')
        at--;
    return at ? at : fit ? fit : 1;
}

/* Text behind `before`, further lines below its end; `rows` at most, of which the last ends with "...". 0: all. */
static void lines_wrapped(struct lines *l, const char *before, const char *text, int rows)
{
    struct sv rest = sv_from(safe(l->a, sv_from(text)));
    const size_t indent = strlen(before);
    const size_t columns = l->columns ? (size_t)l->columns - indent : TEXT_BYTES;

    for (int row = 1; rest.len || row == 1; row++) {
        const bool cut = row == rows && shown_columns(rest) > columns;
        size_t len = cut ? shown_fit(rest, columns - 3) : line_length(rest, columns);
        size_t end = len;
        while (end > 0 && rest.p[end - 1] == ' ')
            end--;
        lines_add(l, arena_printf(l->a, "%*s%.*s%s", (int)indent, row == 1 ? before : "", (int)end, rest.p,
                                  cut ? "..." : ""));
        if (cut)
            return;
        while (len < rest.len && rest.p[len] == ' ')
            len++;
        rest = sv_skip(rest, len);
    }
}

/* A line of a log is cut, not wrapped: its beginning says most. */
static void lines_cut(struct lines *l, const char *before, struct sv text)
{
    const char *shown = safe(l->a, text);
    const size_t columns = l->columns ? (size_t)l->columns - strlen(before) : TEXT_BYTES;

    lines_add(l, arena_printf(l->a, "%s%.*s", before, (int)shown_fit(sv_from(shown), columns), shown));
}

static void lines_print(const struct lines *l, struct buf *out)
{
    for (int i = 0; i < l->n; i++)
        buf_printf(out, NULL, "%s\n", l->at[i]);
}

/* ---- the screen */

enum {
    MESSAGE_ROWS = 4,
    BEFORE_ROWS = 3,
    GAP_ROWS = 2,
};

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

/* The line with the error, whole where it was cut and the message has more of it. */
static const char *error_text(const struct finding *g, struct arena *a)
{
    const bool cut = strlen(g->line) == ROOTCAUSE_LINE_BYTES;
    const char *at = cut ? strstr(g->message, g->line) : NULL;

    return at ? arena_strndup(a, at, strcspn(at, "\n")) : g->line;
}

static int rows_of(struct sv text, size_t columns)
{
    int rows = 0;

    for (; text.len; rows++) {
        text = sv_skip(text, line_length(text, columns));
        while (sv_starts(text, " "))
            text = sv_skip(text, 1);
    }
    return rows;
}

/* Leave the middle of a text out that needs more than so many rows: its end says most. */
static const char *without_middle(const struct lines *l, const char *text, int rows)
{
    static const char MARK[] = "... ";
    const struct sv shown = sv_from(safe(l->a, sv_from(text)));
    const size_t row = (size_t)l->columns - 2;
    struct sv end = shown;

    if (!l->columns || rows_of(shown, row) <= rows)
        return text;
    while (rows_of(end, row - strlen(MARK)) > rows - 1) {
        const size_t word = strcspn(end.p, " ") + 1;
        end = sv_skip(end, word < end.len ? word : end.len);
    }
    return end.len ? arena_printf(l->a, "%.*s%s%s", (int)line_length(shown, row - strlen("...")), shown.p,
                                  MARK, end.p)
                   : text;
}

static void add_head(struct lines *l, const struct why_facts *f, const struct answer *w, bool all)
{
    const struct finding *g = &w->finding;
    const char *state = job_phase_name(f->job->status.phase);
    const char *message = g->kind == WHY_FAILURE ? error_text(g, l->a) : g->message;

    lines_wrapped(l, arena_printf(l->a, "%s: ", state[0] ? state : "New"), w->summary, 2);
    lines_wrapped(l, "  ", where(f, g, l->a), all ? 0 : 2);
    if (message[0])
        lines_wrapped(l, "  ", all ? message : without_middle(l, message, MESSAGE_ROWS),
                      all ? 0 : MESSAGE_ROWS);
}

/* ": no progress for 300 s: rank 2 loops in train.py:14 step()" of a hang. */
static const char *hung_where(const struct failure *e, struct arena *a)
{
    const bool hung = e->reason && strcmp(e->reason, "NoProgress") == 0 && e->message;
    const char *line = hung ? rootcause_line(e->message, "", a) : "";

    return line[0] ? arena_printf(a, ": %s", line) : "";
}

/* Earlier failures of the job, the newest first, and where that one hung. */
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
        text = arena_printf(l->a, "%s%sattempt %d %s on %s %s ago%s", text, n ? "; " : "", e->attempt,
                            e->reason ? e->reason : "failed", e->pod ? e->pod : "a pod",
                            next_span(f->now_ms - e->time_ms, l->a), n ? "" : hung_where(e, l->a));
        n++;
    }
    if (n)
        lines_wrapped(l, "Before:   ", text, all ? 0 : BEFORE_ROWS);
}

/* The messages of the events, each once. */
static void add_events(struct lines *l, const struct why_facts *f)
{
    const cJSON *e;

    if (cJSON_GetArraySize(f->events))
        lines_add(l, "");
    cJSON_ArrayForEach(e, f->events)
    {
        const char *reason = json_str(e, "reason"), *message = json_str(e, "message");
        const char *name = json_str(json_child(e, "involvedObject"), "name");
        lines_wrapped(l, "Event:    ",
                      arena_printf(l->a, "%s: %s: %s", name ? name : "-", reason ? reason : "-",
                                   message ? message : ""),
                      0);
    }
}

static void add_log(struct lines *l, const struct answer *w, int rows)
{
    const char *pod = w->finding.pod;
    struct sv rest, line;

    if (!w->log[0] || rows < 3)
        return;
    lines_add(l, "");
    lines_cut(l, "", sv_from(arena_printf(l->a, "Last lines%s%s:", pod ? " of " : "", pod ? pod : "")));
    for (rest = sv_from(finding_tail(w->log, rows - 2)); rest.len && sv_next(&rest, '\n', &line);)
        lines_cut(l, "  ", line);
}

static void add_gaps(struct lines *l, const struct why_facts *f, bool all)
{
    for (int i = 0; i < f->n_gaps && (all || i < GAP_ROWS); i++)
        lines_wrapped(l, "Not read: ", f->gaps[i], all ? 0 : 1);
}

static void add_notes(struct lines *l, const struct answer *w)
{
    for (int i = 0; i < w->n_notes; i++)
        lines_wrapped(l, "Note:     ", w->notes[i], 0);
}

static void add_tail(struct lines *l, const struct why_facts *f, const struct answer *w, bool all)
{
    lines_add(l, "");
    add_before(l, f, &w->finding, all);
    add_gaps(l, f, all);
    add_notes(l, w);
    lines_wrapped(l, "Operator: ", w->operator_next, 0);
    lines_wrapped(l, "Do:       ", w->todo, 0);
    if (w->then[0])
        lines_wrapped(l, "          ", w->then, 0);
}

static void add_healthy(struct lines *l, const struct why_facts *f, const struct answer *w, bool all)
{
    lines_wrapped(l, "", w->summary, 0);
    if (w->detail[0])
        lines_wrapped(l, "  ", w->detail, 0);
    add_before(l, f, &w->finding, all);
    add_notes(l, w);
    add_gaps(l, f, all);
    lines_wrapped(l, "Do:       ", w->todo, 0);
}

void screen_print(const struct why_facts *f, struct screen_size size, struct buf *out)
{
    cleanup_arena struct arena a = {0};
    struct lines *head = arena_new(&a, struct lines), *tail = arena_new(&a, struct lines);
    const struct answer w = answer_of(f, &a);
    const bool all = size.rows == 0;
    const int columns = size.columns && size.columns < SCREEN_COLUMNS_MIN ? SCREEN_COLUMNS_MIN : size.columns;
    const int rows = size.rows < SCREEN_ROWS_MIN ? SCREEN_ROWS_MIN : size.rows;

    *head = *tail = (struct lines){.a = &a, .columns = columns};
    if (!w.cause) {
        add_healthy(head, f, &w, all);
        lines_print(head, out);
        return;
    }
    add_head(head, f, &w, all);
    add_tail(tail, f, &w, all);
    add_log(head, &w, all ? ANSWER_LOG_LINES + 2 : rows - 1 - head->n - tail->n);
    if (size.events)
        add_events(head, f);
    lines_print(head, out);
    lines_print(tail, out);
}
