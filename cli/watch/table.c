/* table.c - lay out the table of jobs for a terminal of a given size. */
#include "cli/watch/table.h"
#include "cli/shown.h"
#include "cli/span.h"
#include "cli/watch/bars.h"
#include "common/text.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- fit the columns of the table of jobs into a width */

enum column {
    COLUMN_NAME,
    COLUMN_PHASE,
    COLUMN_READY,
    COLUMN_BAR,
    COLUMN_PERCENT,
    COLUMN_LEFT,
    COLUMN_LOSS,
    COLUMN_SPARK,
    COLUMN_RESTARTS,
    COLUMN_AGE,
    COLUMN_EVENT,
    COLUMNS,
};

enum {
    LABEL_MIN = 12,
    LABEL_GOOD = 20, /* rather than cut a name below this, the age is left out */
    LABEL_MAX = 60,
    BAR_MAX = 24,
    EVENT_FROM = 130, /* a terminal so wide has the events beside the jobs */
    EVENT_MIN = 24,
};

static const struct {
    const char *title;
    int width;
    int keep; /* what is lower goes first when there is no room; COLUMN_NAME stays */
} COLUMN[COLUMNS] = {
    [COLUMN_NAME] = {"NAME", LABEL_MIN, 10}, [COLUMN_PHASE] = {"PHASE", 9, 9},
    [COLUMN_READY] = {"READY", 5, 5},        [COLUMN_BAR] = {"PROGRESS", 10, 7},
    [COLUMN_PERCENT] = {"", 4, 8},           [COLUMN_LEFT] = {"LEFT", 6, 6},
    [COLUMN_LOSS] = {"LOSS", 7, 4},          [COLUMN_SPARK] = {"", 8, 3},
    [COLUMN_RESTARTS] = {"RST", 3, 2},       [COLUMN_AGE] = {"AGE", 6, 1},
    [COLUMN_EVENT] = {"LAST EVENT", 0, 0},
};

struct drawing {
    const struct table *s;
    struct buf *out;
    int width[COLUMNS]; /* 0: left out */
    bool below;         /* events stand in a line of their own */
    int used;           /* columns of the present line that are written */
};

static int needed(const struct drawing *d)
{
    int sum = -1;

    for (int c = 0; c < COLUMNS; c++)
        sum += d->width[c] ? d->width[c] + 1 : 0;
    return sum;
}

static int longest_name(const struct table *t, struct board_job *const *jobs, size_t n)
{
    int longest = LABEL_MIN;

    for (size_t i = 0; i < n; i++) {
        const int len = (int)(strlen(jobs[i]->name) + (t->with_ns ? strlen(jobs[i]->ns) + 1 : 0));
        longest = len > longest ? len : longest;
    }
    return longest < LABEL_MAX ? longest : LABEL_MAX;
}

static void widen(struct drawing *d, enum column c, int to)
{
    const int room = d->s->columns - needed(d), more = to - d->width[c];

    if (d->width[c] && room > 0 && more > 0)
        d->width[c] += more < room ? more : room;
}

/* Fill width[] for these jobs. A blank stands between two columns. */
static void columns_fit(struct drawing *d, struct board_job *const *jobs, size_t n)
{
    const int longest = longest_name(d->s, jobs, n);

    for (int c = 0; c < COLUMNS; c++)
        d->width[c] = COLUMN[c].width;
    for (size_t i = 0; i < n; i++) {
        const int ready = (int)shown_columns(sv_from(jobs[i]->ready));
        d->width[COLUMN_READY] = ready > d->width[COLUMN_READY] ? ready : d->width[COLUMN_READY];
    }
    for (int keep = 1; keep <= COLUMN[COLUMN_PHASE].keep && needed(d) > d->s->columns; keep++)
        for (int c = 0; c < COLUMNS; c++)
            if (COLUMN[c].keep == keep)
                d->width[c] = 0;
    if (needed(d) + (longest < LABEL_GOOD ? longest : LABEL_GOOD) - LABEL_MIN > d->s->columns)
        d->width[COLUMN_AGE] = 0;
    widen(d, COLUMN_NAME, longest);
    const int room = d->s->columns - needed(d) - 1;
    if (d->s->columns >= EVENT_FROM && room >= EVENT_MIN) {
        widen(d, COLUMN_BAR, 16);
        widen(d, COLUMN_SPARK, 16);
        d->width[COLUMN_EVENT] = d->s->columns - needed(d) - 1;
    }
    widen(d, COLUMN_SPARK, BOARD_LOSSES / 2);
    widen(d, COLUMN_BAR, BAR_MAX);
    widen(d, COLUMN_SPARK, BOARD_LOSSES);
}

/* ---- the table */

static const char REVERSED[] = "7", DIM[] = "2", BOLD[] = "1", RED[] = "31", GREEN[] = "32", YELLOW[] = "33",
                  CYAN[] = "36";

static void spaces(struct drawing *d, int n)
{
    if (n <= 0)
        return;
    buf_printf(d->out, NULL, "%*s", n, "");
    d->used += n;
}

/* The mark of a text that is cut, one column wide. */
static const char *more(const struct drawing *d)
{
    return d->s->unicode ? "\xe2\x80\xa6" : "~";
}

/* Text in a field of `width` columns, cut with a mark when it is longer. Negative: aligned to the right. */
static void field(struct drawing *d, const char *style, const char *text, int width)
{
    const struct sv all = sv_from(text);
    const int w = width < 0 ? -width : width, columns = (int)shown_columns(all);
    /* NO_COLOR is about colours: a row is marked nevertheless. */
    const bool cut = columns > w, paint = style && *text && (d->s->colours || style == REVERSED);
    const size_t len = cut ? shown_fit(all, w > 0 ? (size_t)w - 1 : 0) : all.len;
    const int shown = cut ? (int)shown_columns((struct sv){text, len}) + (w > 0) : columns;

    if (width < 0)
        spaces(d, w - shown);
    if (paint)
        buf_printf(d->out, NULL, "\x1b[%sm", style);
    buf_append(d->out, text, len, NULL);
    if (cut && w > 0)
        buf_puts(d->out, more(d), NULL);
    d->used += shown;
    if (paint)
        buf_puts(d->out, "\x1b[0m", NULL);
    if (width > 0)
        spaces(d, w - shown);
}

static void cell(struct drawing *d, enum column c, const char *style, const char *text)
{
    const bool right = c == COLUMN_READY || c == COLUMN_PERCENT || c == COLUMN_LEFT || c == COLUMN_LOSS ||
                       c == COLUMN_RESTARTS || c == COLUMN_AGE;

    if (!d->width[c])
        return;
    if (d->used)
        spaces(d, 1);
    field(d, style, text, right ? -d->width[c] : d->width[c]);
}

static void line(struct drawing *d)
{
    while (d->out->len && d->out->data[d->out->len - 1] == ' ')
        d->out->data[--d->out->len] = '\0';
    buf_puts(d->out, "\n", NULL);
    d->used = 0;
}

/* One text over the columns first..last. */
static void across(struct drawing *d, enum column first, enum column last, const char *style,
                   const char *text)
{
    int width = -1;

    for (int c = (int)first; c <= (int)last; c++)
        width += d->width[c] ? d->width[c] + 1 : 0;
    if (width <= 0)
        return;
    if (d->used)
        spaces(d, 1);
    field(d, style, text, width);
}

static const char *style_of(enum job_phase p)
{
    static const char *const STYLES[JOB_PHASES] = {
        [JOB_NONE] = YELLOW,     [JOB_PENDING] = YELLOW, [JOB_RUNNING] = GREEN, [JOB_PAUSED] = DIM,
        [JOB_RESUMING] = YELLOW, [JOB_SUCCEEDED] = NULL, [JOB_FAILED] = RED,    [JOB_UNKNOWN] = YELLOW};

    return STYLES[p];
}

/* Its name, cut in the middle: jobs of one series differ at their ends. */
static void draw_name(struct drawing *d, const struct board_job *j, bool selected)
{
    char text[sizeof(j->ns) + sizeof(j->name)], head[sizeof(text)];
    const int w = d->width[COLUMN_NAME];
    const char *style = selected ? REVERSED : NULL;

    snprintf(text, sizeof(text), "%s%s%s", d->s->with_ns ? j->ns : "", d->s->with_ns ? "/" : "", j->name);
    const int len = (int)strlen(text);
    if (len <= w || len != (int)shown_columns(sv_from(text))) {
        cell(d, COLUMN_NAME, style, text);
        return;
    }
    const int tail = (w - 1) / 2;
    snprintf(head, sizeof(head), "%.*s%s%s", w - 1 - tail, text, more(d), text + len - tail);
    cell(d, COLUMN_NAME, style, head);
}

/* In 7 columns, 8 where it is negative. */
static void number_text(double x, char *to, size_t size)
{
    const double a = fabs(x);

    snprintf(to, size, a >= 1e5 || (a > 0 && a < 1e-3) ? "%.1e" : "%.4g", x);
}

static void draw_loss(struct drawing *d, const struct board_job *j)
{
    char number[32] = "", spark[BARS_BYTES];

    if (isfinite(j->progress.loss) && j->progress.time_ms)
        number_text(j->progress.loss, number, sizeof(number));
    cell(d, COLUMN_LOSS, NULL, number);
    cell(d, COLUMN_SPARK, CYAN,
         bars_spark(j->losses, j->n_losses, d->width[COLUMN_SPARK], d->s->unicode, spark));
}

static void draw_progress(struct drawing *d, const struct board_job *j)
{
    const struct jobprogress *p = &j->progress;
    const bool ended = j->phase == JOB_SUCCEEDED || j->phase == JOB_FAILED;
    char summary[JOBPROGRESS_SUMMARY_BYTES], bar[BARS_BYTES], left[SPAN_BYTES];

    jobprogress_summary(p, summary);
    if (p->percent >= 0) {
        cell(d, COLUMN_BAR, j->phase == JOB_RUNNING ? GREEN : DIM,
             bars_progress(p->percent, d->width[COLUMN_BAR], d->s->unicode, bar));
        cell(d, COLUMN_PERCENT, NULL, summary);
        cell(d, COLUMN_LEFT, NULL, p->eta_s >= 0 && !ended ? span_text(p->eta_s, false, left) : "");
    } else {
        across(d, COLUMN_BAR, COLUMN_LEFT, NULL, summary);
    }
    draw_loss(d, j);
}

static void draw_middle(struct drawing *d, const struct board_job *j)
{
    const bool known = j->progress.time_ms && (j->progress.percent >= 0 || j->progress.step >= 0);
    const bool trains = j->phase == JOB_RUNNING || j->phase == JOB_PAUSED || j->phase == JOB_SUCCEEDED;

    if (trains && known)
        draw_progress(d, j);
    else if (j->phase == JOB_NONE)
        across(d, COLUMN_BAR, COLUMN_SPARK, DIM, "no status yet: the operator has not seen it");
    else if (j->phase == JOB_FAILED)
        across(d, COLUMN_BAR, COLUMN_SPARK, RED, j->failure[0] ? j->failure : j->reason);
    else
        across(d, COLUMN_BAR, COLUMN_SPARK, DIM, j->phase == JOB_SUCCEEDED ? "" : j->reason);
}

static void event_text(const struct drawing *d, const struct board_job *j, char *to, size_t size)
{
    char ago[SPAN_BYTES];

    to[0] = '\0';
    if (j->event.time_ms)
        snprintf(to, size, "%s ago %s", span_text((d->s->now_ms - j->event.time_ms) / 1000, false, ago),
                 j->event.text);
}

static void draw_job(struct drawing *d, const struct board_job *j, bool selected)
{
    char restarts[16] = "", age[SPAN_BYTES] = "", event[BOARD_TEXT_BYTES + 64];

    if (j->restarts)
        snprintf(restarts, sizeof(restarts), "%d", (int)j->restarts);
    if (j->created_ms)
        span_text((d->s->now_ms - j->created_ms) / 1000, false, age);
    event_text(d, j, event, sizeof(event));
    draw_name(d, j, selected);
    cell(d, COLUMN_PHASE, style_of(j->phase), j->phase == JOB_NONE ? "-" : job_phase_name(j->phase));
    cell(d, COLUMN_READY, NULL, j->ready);
    draw_middle(d, j);
    cell(d, COLUMN_RESTARTS, YELLOW, restarts);
    cell(d, COLUMN_AGE, NULL, age);
    cell(d, COLUMN_EVENT, j->event.warning ? YELLOW : DIM, event);
    line(d);
    if (d->below && event[0]) {
        spaces(d, 2);
        field(d, j->event.warning ? YELLOW : DIM, event, d->s->columns - 2);
        line(d);
    }
}

static void draw_header(struct drawing *d)
{
    for (int c = 0; c < COLUMNS; c++)
        cell(d, (enum column)c, DIM, COLUMN[c].title);
    line(d);
}

/* "3 Running, 1 Failed" of these jobs, but for those first to last. */
static void count_phases(struct board_job *const *jobs, size_t n, size_t first, size_t last, char *to,
                         size_t size)
{
    static const enum job_phase ORDER[] = {JOB_RUNNING, JOB_PENDING, JOB_RESUMING, JOB_UNKNOWN,
                                           JOB_NONE,    JOB_PAUSED,  JOB_FAILED,   JOB_SUCCEEDED};
    size_t count[JOB_PHASES] = {0};

    to[0] = '\0';
    for (size_t i = 0; i < n; i++)
        count[jobs[i]->phase] += i < first || i >= last;
    for (size_t i = 0; i < ARRAY_LEN(ORDER); i++)
        if (count[ORDER[i]])
            text_add(to, size, "%s%zu %s", to[0] ? ", " : "", count[ORDER[i]],
                     ORDER[i] == JOB_NONE ? "without status" : job_phase_name(ORDER[i]));
}

static void draw_title(struct drawing *d, struct board_job *const *jobs, size_t n)
{
    char phases[200], text[500];

    count_phases(jobs, n, n, n, phases, sizeof(phases));
    if (d->s->waiting)
        snprintf(text, sizeof(text), "Reading the training jobs in %s", d->s->what);
    else
        snprintf(text, sizeof(text), "%zu training job%s in %s%s%s", n, n == 1 ? "" : "s", d->s->what,
                 n ? ": " : "", phases);
    field(d, BOLD, text, d->s->columns);
    line(d);
}

/* Jobs first to last have rows. */
static void draw_rest(struct drawing *d, struct board_job *const *jobs, size_t n, size_t first, size_t last)
{
    char phases[200], text[300];

    count_phases(jobs, n, first, last, phases, sizeof(phases));
    snprintf(text, sizeof(text), "%zu more: %s", n - (last - first), phases);
    field(d, DIM, text, d->s->columns);
    line(d);
}

static size_t count_events(struct board_job *const *jobs, size_t n)
{
    size_t count = 0;

    for (size_t i = 0; i < n; i++)
        count += jobs[i]->event.time_ms != 0;
    return count;
}

static int within(int x, int min, int max)
{
    return x < min ? min : x > max ? max : x;
}

void table_draw(const struct table *given, struct board_job *const *jobs, size_t n, struct buf *out)
{
    struct table s = *given;
    struct drawing d = {.s = &s, .out = out};

    s.columns = within(s.columns, TABLE_COLUMNS_MIN, TABLE_COLUMNS_MAX);
    s.rows = within(s.rows, TABLE_ROWS_MIN, TABLE_ROWS_MAX);
    const size_t room = (size_t)(s.rows - 2 - (s.note != NULL));
    const size_t shown = n <= room ? n : room - 1;
    const size_t selected = s.selected < 0 ? 0 : (size_t)s.selected;
    const size_t first = selected < shown || selected >= n ? 0 : selected - shown + 1;

    columns_fit(&d, jobs + first, shown);
    d.below = !d.width[COLUMN_EVENT] && n + count_events(jobs, n) <= room;
    draw_title(&d, jobs, n);
    if (n)
        draw_header(&d);
    for (size_t i = first; i < first + shown; i++)
        draw_job(&d, jobs[i], s.selected == (int)i);
    if (shown < n)
        draw_rest(&d, jobs, n, first, first + shown);
    if (s.note) {
        field(&d, s.alarm ? RED : DIM, s.note, s.columns);
        line(&d);
    }
}
