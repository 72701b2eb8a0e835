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
    ROLE_STEPS,        /* how many: of the epoch; or a counter */
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
    const struct field *bare; /* a pair of numbers without a key, right behind that of the epoch */
    bool aside;
};

static bool is_pair(const struct field *f)
{
    return !isnan(f->of);
}

/* What is counted in other words ("steps per epoch"), and a time, is no position. */
static bool is_place(const struct field *f)
{
    return !fields_has(f->unit, WORDS("s", "ms", "sec", "secs", "seconds", "min", "minutes", "h", "hours")) &&
           !(f->unit.len && *f->unit.p == '%') &&
           !fields_has(f->before, WORDS("per", "every", "each", "best", "accumulation", "micro", "early"));
}

static enum role role_of_place(const struct field *f, struct sv last, struct sv prefix)
{
    const bool many = !is_pair(f) && (last.p[last.len - 1] | 0x20) == 's';
    const bool done = fields_has(last, WORDS("updates")); /* "num_updates": so many until now */
    const bool total = !done && (fields_has(prefix, WORDS("total", "num", "max", "n")) ||
                                 fields_has(f->before, WORDS("total", "num", "max", "optimization")));

    if (!is_place(f) || (many && !total && f->before.len)) /* "bad epochs 2" */
        return ROLE_NONE;
    if (fields_has(last, WORDS("epoch", "epochs")))
        return many || (total && !is_pair(f)) ? ROLE_TOTAL_EPOCHS : ROLE_EPOCH;
    if (fields_has(last, WORDS("batch", "batches")))
        return ROLE_BATCH;
    if (fields_has(prefix, WORDS("global", "current", "cur")) || fields_has(f->before, WORDS("global")))
        return ROLE_GLOBAL_STEP;
    if (many && !total) /* "iters: 100" counts */
        return !prefix.len && fields_has(last, WORDS("steps")) ? ROLE_STEPS : ROLE_NONE;
    return many ? ROLE_TOTAL_STEPS : ROLE_STEP;
}

/* "samples/s"; but "s/sample" and "samples/s/gpu" are not. */
static bool is_rate_of_samples(struct sv name)
{
    return fields_has(name,
                      WORDS("samples", "sample", "img", "imgs", "image", "images", "examples", "example")) &&
           fields_has(fields_last_part(name), WORDS("s", "sec", "second"));
}

static enum role role_of(const struct field *f)
{
    const struct sv last = fields_last_part(f->key), prefix = {f->key.p, (size_t)(last.p - f->key.p)};
    const bool aside = fields_aside(f->key) || fields_aside(f->before);

    if (is_rate_of_samples(f->unit) || is_rate_of_samples(f->key))
        return aside || f->value <= 0 ? ROLE_NONE : ROLE_SAMPLES;
    if (fields_has(last, WORDS("loss")) && aside)
        return ROLE_SCORE;
    /* a part of the loss ("iou_loss") is not the loss */
    if (!last.len ||
        !fields_only(prefix, WORDS("train", "training", "global", "current", "cur", "total", "num", "max",
                                   "n", "optimizer", "optimization", "tot", "avg", "avr", "average", "mean",
                                   "batch", "running", "reduced", "lm")))
        return ROLE_NONE;
    if (fields_has(last, WORDS("loss")))
        return ROLE_LOSS;
    if (fields_has(last, WORDS("epoch", "epochs", "step", "steps", "iter", "iters", "iteration", "iterations",
                               "update", "updates", "batch", "batches")))
        return role_of_place(f, last, prefix);
    return ROLE_NONE;
}

static bool fits(const struct field *f, enum role role)
{
    return role > ROLE_TOTAL_STEPS || bar_counts(f) ||
           (role == ROLE_EPOCH && !is_pair(f) && f->value >= 0 && f->value < 1e9);
}

static bool is_of_train(const struct field *f)
{
    return fields_has(f->key, WORDS("train", "training")) ||
           fields_has(f->before, WORDS("train", "training"));
}

static struct reading read_fields(const struct field *f, int n)
{
    struct reading r = {0};
    bool parts = false; /* "D loss: 0.5 G loss: 0.7": no word tells which is the loss */

    for (int i = 0; i < n; i++) {
        enum role role = role_of(&f[i]);
        const bool first = !r.of[ROLE_EPOCH] && !r.of[ROLE_STEP];
        /* "Test: epoch 3", "Test: [10/50]", "val 10/50" */
        if ((role && role <= ROLE_STEPS) || (!role && is_pair(&f[i])))
            r.aside = r.aside || (first && f[i].aside) || fields_aside(f[i].key);
        if (role == ROLE_LOSS && f[i].aside && !is_of_train(&f[i]))
            role = ROLE_SCORE;
        if (role == ROLE_LOSS && f[i].whole && i + 1 < n && !f[i + 1].key.len && !f[i + 1].boxed)
            role = ROLE_NONE; /* "Train loss 1200 0.512" */
        parts = parts || (role == ROLE_LOSS && r.of[role] && r.of[role]->before.len && f[i].before.len);
        if (role && !r.of[role] && fits(&f[i], role))
            r.of[role] = &f[i];
        if (i > 0 && r.of[ROLE_EPOCH] == &f[i - 1] && is_pair(&f[i]) && !f[i].key.len && bar_counts(&f[i]))
            r.bare = &f[i];
    }
    r.of[ROLE_LOSS] = parts ? NULL : r.of[ROLE_LOSS];
    return r;
}

static void take_epoch(struct progress_seen *s, const struct reading *r, struct sv line)
{
    const struct field *epoch = r->of[ROLE_EPOCH], *total = r->of[ROLE_TOTAL_EPOCHS];

    if (epoch && !is_pair(epoch) && (!epoch->whole || sv_starts(line, "{'"))) {
        /* {'loss': 0.5, 'epoch': 1.25}: so many are done; the one under way, or that has just ended, is not before it */
        const double before = epoch->value > 0 ? ceil(epoch->value) - 1 : 0;
        s->epoch = (int64_t)before + 1;
        s->epoch_fraction = epoch->value - before;
    } else if (epoch) {
        s->epoch = (int64_t)epoch->value;
        /* printed behind the epoch, unless a step stands there too */
        if ((r->of[ROLE_LOSS] || (r->of[ROLE_SCORE] && is_pair(epoch))) && !r->of[ROLE_STEP] &&
            !r->of[ROLE_GLOBAL_STEP] && !r->of[ROLE_BATCH] && !r->of[ROLE_STEPS])
            s->epoch_fraction = 1;
    }
    if (epoch && is_pair(epoch))
        s->total_epochs = (int64_t)epoch->of;
    else if (total && total->value >= 1 && (epoch || total->key.len > strlen("epochs") || total->before.len))
        s->total_epochs = (int64_t)total->value;
}

/* Beside an epoch without its total, nothing tells whether a step is of the epoch or of the run. A number of steps beside
 * a loss is a counter. "Total steps: 512" alone may be one. */
static void take_steps(struct progress_seen *s, const struct reading *r)
{
    const struct field *step = r->of[ROLE_STEP], *batch = r->of[ROLE_BATCH], *total = r->of[ROLE_TOTAL_STEPS],
                       *steps = r->of[ROLE_STEPS], *global = r->of[ROLE_GLOBAL_STEP];

    if (batch && is_pair(batch) && s->epoch >= 0)
        bar_epoch_step(s, batch->value, batch->of);
    else if (step && is_pair(step) && (s->epoch < 0 || s->total_epochs >= 0))
        bar_loose(s, step);
    else if (r->bare && r->bare->part) /* "[1280/60000 (2%)]" counts samples */
        s->epoch_fraction = r->bare->value / r->bare->of;
    else if (r->bare)
        bar_epoch_step(s, r->bare->value, r->bare->of);
    else if (step && steps && steps->value >= 1 && step->value <= steps->value && s->epoch >= 0) /* JSON */
        bar_epoch_step(s, step->value, steps->value);
    else if (steps && steps->value >= 1 && s->epoch >= 0 && !r->of[ROLE_LOSS] && !r->of[ROLE_SCORE])
        s->epoch_steps = (int64_t)steps->value;
    else if (global || (step && s->epoch < 0 && (r->of[ROLE_LOSS] || r->of[ROLE_SAMPLES])))
        bar_loose(s, global ? global : step);
    if (total && total->value >= 1 && (step || global || fields_has(total->before, WORDS("optimization"))))
        s->total_steps = (int64_t)total->value;
    s->loose = s->loose && !global && !total;
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
    /* a loss alone says whose it is: a line like "GPU 0 Loss: 147" has a sum, or a test's */
    if (!s->sideline && loss && (s->step >= 0 || s->epoch >= 0 || is_of_train(loss)))
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
