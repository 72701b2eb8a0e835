/* recognise.c - recognise a training's progress in one line of its output; cut a stream into such lines. */
#include "launcher/progress/recognise.h"
#include "common/text.h"
#include "launcher/progress/bar.h"
#include "launcher/progress/fields.h"

#include <math.h>
#include <string.h>

#define WORDS(...) ((const char *const[]){__VA_ARGS__, NULL})

enum role {
    ROLE_NONE,
    ROLE_EPOCH,
    ROLE_STEP,         /* of the run or of the epoch */
    ROLE_GLOBAL_STEP,  /* of the run */
    ROLE_BATCH,        /* of the epoch */
    ROLE_STEPS,        /* how many: of the epoch */
    ROLE_TOTAL_EPOCHS, /* how many, and no more */
    ROLE_TOTAL_STEPS,
    ROLE_LOSS,
    ROLE_SCORE, /* of validation, or another metric: what is printed behind an epoch */
    ROLE_SAMPLES,
    ROLES
};

/* The first field of each role, and whether the line tells of something else than training. */
struct reading {
    const struct field *of[ROLES];
    const struct field *bare; /* a pair of numbers without a key */
    bool aside;
};

static bool is_pair(const struct field *f)
{
    return !isnan(f->of);
}

static bool is_time(const struct field *f)
{
    return (f->unit.len && *f->unit.p == '%') ||
           fields_has(f->unit, WORDS("s", "ms", "sec", "secs", "seconds", "min", "minutes", "h", "hours"));
}

/* What is counted in other words ("save_steps", "steps per epoch") is no position. */
static bool is_place(const struct field *f, struct sv prefix)
{
    return !is_time(f) &&
           fields_only(prefix, WORDS("train", "training", "global", "current", "cur", "total", "num", "max",
                                     "n", "optimizer", "optimization")) &&
           !fields_has(f->before, WORDS("per", "every", "each", "best", "accumulation", "micro", "early"));
}

static enum role role_of_place(const struct field *f, struct sv last)
{
    const struct sv prefix = {f->key.p, (size_t)(last.p - f->key.p)};
    const bool many = !is_pair(f) && (last.p[last.len - 1] | 0x20) == 's';
    const bool done = fields_has(last, WORDS("updates")); /* "num_updates": so many until now */
    const bool total = !done && (fields_has(prefix, WORDS("total", "num", "max", "n")) ||
                                 fields_has(f->before, WORDS("total", "num", "max", "optimization")));

    if (!is_place(f, prefix))
        return ROLE_NONE;
    if (fields_has(last, WORDS("epoch", "epochs")))
        return many || (total && !is_pair(f)) ? ROLE_TOTAL_EPOCHS : ROLE_EPOCH;
    if (fields_has(last, WORDS("batch", "batches")))
        return is_pair(f) ? ROLE_BATCH : ROLE_NONE;
    if (fields_has(prefix, WORDS("global", "current", "cur")) || fields_has(f->before, WORDS("global")))
        return ROLE_GLOBAL_STEP;
    return !many ? ROLE_STEP : total ? ROLE_TOTAL_STEPS : prefix.len ? ROLE_NONE : ROLE_STEPS;
}

static bool is_rate_of_samples(const struct field *f)
{
    static const char *const SAMPLES[] = {"samples", "sample",   "img",     "imgs", "image",
                                          "images",  "examples", "example", NULL};
    static const char *const SECOND[] = {"s", "sec", "second", NULL};

    return (fields_has(f->unit, SAMPLES) && fields_has(f->unit, SECOND)) ||
           (fields_has(f->key, SAMPLES) && fields_has(f->key, SECOND));
}

static enum role role_of(const struct field *f)
{
    const struct sv last = fields_last_part(f->key);
    const bool aside = fields_aside(f->key) || fields_aside(f->before);

    if (is_rate_of_samples(f))
        return aside || f->value <= 0 ? ROLE_NONE : ROLE_SAMPLES;
    if (!last.len)
        return ROLE_NONE;
    if (fields_has(last, WORDS("loss")))
        return aside ? ROLE_SCORE : ROLE_LOSS;
    if (fields_has(last, WORDS("acc", "accuracy")))
        return ROLE_SCORE;
    if (fields_has(last, WORDS("epoch", "epochs", "step", "steps", "iter", "iters", "iteration", "iterations",
                               "update", "updates", "batch", "batches")))
        return role_of_place(f, last);
    return ROLE_NONE;
}

/* A bare pair counts only in brackets, or right behind the number of the epoch. */
static bool fits_bare(const struct field *f, bool behind_epoch)
{
    return is_pair(f) && !f->key.len && bar_counts(f) && (f->boxed || behind_epoch);
}

/* "[3][40/500]": the first is the epoch, whatever stands before it. */
static bool is_boxed_epoch(const struct field *f, const struct field *next)
{
    return f->boxed && !is_pair(f) && !f->key.len && bar_counts(f) && next->boxed && *f->end == '[';
}

static bool fits(const struct field *f, enum role role)
{
    return role > ROLE_TOTAL_STEPS || bar_counts(f) ||
           (role == ROLE_EPOCH && !is_pair(f) && f->value >= 0 && f->value < 1e9);
}

static struct reading read_fields(const struct field *f, int n)
{
    struct reading r = {0};

    for (int i = 0; i < n; i++) {
        enum role role = role_of(&f[i]);
        const bool first = !r.of[ROLE_EPOCH] && !r.of[ROLE_STEP];
        /* "Test: epoch 3", "Test: [10/50]", "val 10/50" */
        if ((role && role <= ROLE_STEPS) || (!role && is_pair(&f[i])))
            r.aside = r.aside || (first && f[i].aside) || fields_aside(f[i].key);
        if (role == ROLE_LOSS && first && f[i].aside)
            role = ROLE_SCORE;
        if (role && !r.of[role] && fits(&f[i], role))
            r.of[role] = &f[i];
        if (i > 0 && !r.bare && !r.of[ROLE_EPOCH] && is_pair(&f[i]) && is_boxed_epoch(&f[i - 1], &f[i]))
            r.of[ROLE_EPOCH] = &f[i - 1];
        if (!r.bare && fits_bare(&f[i], i > 0 && r.of[ROLE_EPOCH] == &f[i - 1]))
            r.bare = &f[i];
    }
    return r;
}

/* {'loss': 0.5, 'epoch': 1.25}: so many epochs are done. */
static void take_epochs_done(struct progress_seen *s, double done)
{
    const double before = done > 0 ? ceil(done) - 1 : 0; /* the one that is under way, or has just ended */

    s->epoch = (int64_t)before + 1;
    s->epoch_fraction = done - before;
}

static void take_epoch(struct progress_seen *s, const struct reading *r, struct sv line)
{
    const struct field *epoch = r->of[ROLE_EPOCH], *total = r->of[ROLE_TOTAL_EPOCHS];

    if (epoch && !is_pair(epoch) && (!epoch->whole || sv_starts(line, "{'"))) {
        take_epochs_done(s, epoch->value);
    } else if (epoch) {
        s->epoch = (int64_t)epoch->value;
        if (r->of[ROLE_LOSS] || r->of[ROLE_SCORE]) /* printed behind the epoch, unless a step follows */
            s->epoch_fraction = 1;
    }
    if (epoch && is_pair(epoch))
        s->total_epochs = (int64_t)epoch->of;
    else if (total && total->value >= 1 && (epoch || total->key.len > strlen("epochs") || total->before.len))
        s->total_epochs = (int64_t)total->value;
}

/* A step without its total, or with one that stands elsewhere in the line, as in JSON. */
static void take_single_step(struct progress_seen *s, const struct reading *r)
{
    const struct field *step = r->of[ROLE_STEP], *steps = r->of[ROLE_STEPS],
                       *global = r->of[ROLE_GLOBAL_STEP];

    if (step && steps && steps->value >= 1 && step->value <= steps->value && s->epoch >= 0)
        bar_epoch_step(s, step->value, steps->value);
    else if (steps && steps->value >= 1 && s->epoch >= 0)
        s->epoch_steps = (int64_t)steps->value;
    else if (global)
        bar_loose(s, global);
    else if (step && (r->of[ROLE_LOSS] || r->of[ROLE_SAMPLES]))
        bar_loose(s, step);
    if (s->step >= 0)
        s->loose = !global;
}

static void take_steps(struct progress_seen *s, const struct reading *r)
{
    const struct field *step = r->of[ROLE_STEP], *batch = r->of[ROLE_BATCH], *total = r->of[ROLE_TOTAL_STEPS];

    if (batch)
        bar_epoch_step(s, batch->value, batch->of);
    else if (step && is_pair(step))
        bar_loose(s, step);
    else if (r->bare && s->epoch >= 0 && r->bare->part) { /* "[1280/60000 (2%)]" counts samples */
        s->epoch_fraction = r->bare->value / r->bare->of;
    } else if (r->bare && s->epoch >= 0)
        bar_epoch_step(s, r->bare->value, r->bare->of);
    else if (r->bare && r->bare->boxed && !r->bare->part && (r->of[ROLE_LOSS] || r->of[ROLE_SAMPLES]))
        bar_loose(s, r->bare);
    else
        take_single_step(s, r);
    if (total && total->value >= 1) {
        s->total_steps = (int64_t)total->value;
        s->loose = false;
    }
}

/* A loss alone says whose it is: a line like "GPU 0 Loss: 147" has a sum, or a test's. */
static bool is_of_training(const struct field *loss, const struct progress_seen *s)
{
    const struct progress_seen none = progress_nothing();

    return s->step != none.step || s->epoch != none.epoch || s->epoch_step != none.epoch_step ||
           fields_has(loss->key, WORDS("train", "training")) ||
           fields_has(loss->before, WORDS("train", "training"));
}

static void recognise_text(struct sv text, struct progress_seen *s)
{
    struct field fields[FIELDS_MAX];
    const int n = fields_scan(text, fields);
    const struct bar bar = bar_find(text, fields, n);
    const struct reading r = read_fields(fields, n);
    const struct field *loss = r.of[ROLE_LOSS], *samples = r.of[ROLE_SAMPLES];

    if (bar.at) {
        bar_take(&bar, fields, r.of[ROLE_EPOCH], loss != NULL, s);
    } else if (r.aside) {
        s->sideline = true;
    } else {
        take_epoch(s, &r, text);
        take_steps(s, &r);
    }
    if (!s->sideline && loss && is_of_training(loss, s))
        s->loss = loss->value;
    if (!s->sideline && samples)
        s->samples_per_second = samples->value;
}

static bool says_something(const struct progress_seen *s)
{
    return s->sideline || s->step >= 0 || s->total_steps >= 0 || s->epoch >= 0 || s->total_epochs >= 0 ||
           s->epoch_steps >= 0 || isfinite(s->loss) || isfinite(s->samples_per_second);
}

/* Copy without the sequences that colour text and move the cursor. *digits: there are some. */
static size_t plain(struct sv line, char out[static RECOGNISE_LINE_BYTES], bool *digits)
{
    const size_t len = line.len < RECOGNISE_LINE_BYTES ? line.len : RECOGNISE_LINE_BYTES;
    size_t n = 0;

    for (size_t i = 0; i < len;) {
        if (line.p[i] == '\x1b') {
            i += text_escape_length(line.p + i, len - i);
            continue;
        }
        *digits = *digits || sv_is_digit(line.p[i]);
        out[n++] = line.p[i++];
    }
    return n;
}

bool recognise_line(struct sv line, struct progress_seen *ret)
{
    char text[RECOGNISE_LINE_BYTES];
    bool digits = false;
    const size_t len = plain(line, text, &digits);

    *ret = progress_nothing();
    if (digits)
        recognise_text(sv_trim((struct sv){text, len}), ret);
    return says_something(ret);
}

static void end_line(struct recogniser *r, void (*seen)(void *ctx, const struct progress_seen *s), void *ctx)
{
    struct progress_seen s;

    if (recognise_line((struct sv){r->line, (size_t)r->len}, &s))
        seen(ctx, &s);
    r->len = 0;
}

void recogniser_take(struct recogniser *r, const char *bytes, size_t len,
                     void (*seen)(void *ctx, const struct progress_seen *s), void *ctx)
{
    for (size_t i = 0; i < len; i++)
        if (bytes[i] == '\n' || bytes[i] == '\r')
            end_line(r, seen, ctx);
        else if (r->len < RECOGNISE_LINE_BYTES)
            r->line[r->len++] = bytes[i];
}
