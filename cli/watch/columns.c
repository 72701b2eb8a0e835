/* columns.c - fit the columns of the table of jobs into a width. */
#include "cli/watch/columns.h"

#include "cli/shown.h"

#include <string.h>

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

struct fit {
    const struct table *t;
    int *width;
};

static int needed(const struct fit *d)
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

static void widen(struct fit *d, enum column c, int to)
{
    const int room = d->t->columns - needed(d), more = to - d->width[c];

    if (d->width[c] && room > 0 && more > 0)
        d->width[c] += more < room ? more : room;
}

void columns_fit(const struct table *t, struct board_job *const *jobs, size_t n, int width[static COLUMNS])
{
    struct fit fit = {t, width}, *d = &fit;
    const int longest = longest_name(t, jobs, n);

    for (int c = 0; c < COLUMNS; c++)
        d->width[c] = COLUMN[c].width;
    for (size_t i = 0; i < n; i++) {
        const int ready = (int)shown_columns(sv_from(jobs[i]->ready));
        d->width[COLUMN_READY] = ready > d->width[COLUMN_READY] ? ready : d->width[COLUMN_READY];
    }
    for (int keep = 1; keep <= COLUMN[COLUMN_PHASE].keep && needed(d) > d->t->columns; keep++)
        for (int c = 0; c < COLUMNS; c++)
            if (COLUMN[c].keep == keep)
                d->width[c] = 0;
    if (needed(d) + (longest < LABEL_GOOD ? longest : LABEL_GOOD) - LABEL_MIN > d->t->columns)
        d->width[COLUMN_AGE] = 0;
    widen(d, COLUMN_NAME, longest);
    const int room = d->t->columns - needed(d) - 1;
    if (d->t->columns >= EVENT_FROM && room >= EVENT_MIN) {
        widen(d, COLUMN_BAR, 16);
        widen(d, COLUMN_SPARK, 16);
        d->width[COLUMN_EVENT] = d->t->columns - needed(d) - 1;
    }
    widen(d, COLUMN_SPARK, BOARD_LOSSES / 2);
    widen(d, COLUMN_BAR, BAR_MAX);
    widen(d, COLUMN_SPARK, BOARD_LOSSES);
}

const char *columns_title(enum column c)
{
    return COLUMN[c].title;
}
