/* bar.c - the bars of tqdm, Rich, Ultralytics and Keras in a line of output. */
#include "launcher/progress/bar.h"

#include <math.h>
#include <string.h>

#define WORDS(...) ((const char *const[]){__VA_ARGS__, NULL})

enum { DOWNLOAD_PER_S = 10000 }; /* no loop of a training is so fast: what is counted is bytes */

static bool has(struct sv text, const char *bytes)
{
    return text.len && memmem(text.p, text.len, bytes, strlen(bytes));
}

/* " [00:12" or " [1:00:12" behind the counts of a tqdm bar. */
static bool is_tqdm_time(struct sv rest)
{
    size_t n = 1;

    rest = sv_trim(rest);
    if (!rest.len || rest.p[0] != '[')
        return false;
    while (n < rest.len && n < 5 && sv_is_digit(rest.p[n]))
        n++;
    return n > 1 && n + 2 < rest.len && rest.p[n] == ':' && sv_is_digit(rest.p[n + 1]) &&
           sv_is_digit(rest.p[n + 2]);
}

static struct sv behind(struct sv line, const char *p)
{
    return (struct sv){p, (size_t)(line.p + line.len - p)};
}

static struct sv in_front(struct sv line, const char *p)
{
    return sv_trim((struct sv){line.p, (size_t)(p - line.p)});
}

/* Up to the first byte that is not ASCII: Rich draws with such. */
static struct sv plain_start(struct sv line)
{
    size_t n = 0;

    while (n < line.len && (unsigned char)line.p[n] < 0x80)
        n++;
    return sv_trim((struct sv){line.p, n});
}

static bool is_percent(const struct field *f, struct sv line)
{
    return f->unit.len == 1 && *f->unit.p == '%' && sv_starts(behind(line, f->end), "|");
}

/* The bar at fields[0], with the rate behind it. */
static struct bar make_bar(const struct field *fields, int n, struct sv words, bool rich)
{
    for (int i = 1; i < n; i++)
        if (fields[i].unit.len && memchr(fields[i].unit.p, '/', fields[i].unit.len))
            return (struct bar){fields, words, fields[i].unit, fields[i].value, rich};
    return (struct bar){fields, words, {"", 0}, NAN, rich};
}

bool bar_counts(const struct field *f)
{
    return f->whole && f->value >= 0 && f->value <= (double)PROGRESS_COUNT_MAX &&
           (isnan(f->of) || (f->of >= 1 && f->of <= (double)PROGRESS_COUNT_MAX && f->value <= f->of));
}

/* "1/100  2.3G  0.05: 20%|##": the words begin with the epoch. */
static bool is_numbered(const struct field *first, struct sv words)
{
    return first->start == words.p && !isnan(first->of) && bar_counts(first);
}

struct bar bar_find(struct sv line, const struct field *fields, int n)
{
    const char *percent = NULL; /* where "20%|" begins */

    for (int i = 0; i < n; i++) {
        const struct field *f = &fields[i];
        const struct sv rest = behind(line, f->end), words = in_front(line, percent ? percent : f->start);
        const bool pair = !isnan(f->of), rich = has(rest, "\xe2\x80\xa2");
        if (is_percent(f, line)) {
            percent = f->start;
        } else if (is_tqdm_time(rest) && (pair ? !f->boxed : sv_eq(f->unit, "it"))) {
            return make_bar(f, n - i, words, false);
        } else if (pair && has(words, "\xe2\x94\x81") && (rich || is_numbered(fields, line))) {
            return make_bar(f, n - i, plain_start(line), rich);
        } else if (pair && !words.len && !f->boxed &&
                   (sv_starts(sv_trim(rest), "[=") || sv_starts(sv_trim(rest), "[>") ||
                    sv_starts(sv_trim(rest), "\xe2\x94\x81"))) {
            return make_bar(f, 1, words, false);
        }
    }
    return (struct bar){0};
}

/* What is counted is batches, or epochs: not bytes, files, rows of a table. */
static bool is_unit_of_training(struct sv unit)
{
    return !unit.len ||
           fields_has(unit, WORDS("it", "step", "steps", "batch", "batches", "iter", "iters", "iteration",
                                  "sample", "samples", "img", "image", "images", "epoch", "epochs"));
}

static bool are_words_of_training(struct sv words)
{
    return !sv_trim(words).len || sv_eq(words, ":") ||
           fields_has(words, WORDS("train", "training", "epoch", "epochs", "step", "steps", "iter", "iters",
                                   "iteration", "iterations", "batch", "batches", "loss", "rank", "progress",
                                   "fit", "fitting"));
}

void bar_loose(struct progress_seen *s, const struct field *f)
{
    s->step = (int64_t)f->value;
    s->total_steps = isnan(f->of) ? -1 : (int64_t)f->of;
    s->loose = true;
}

void bar_epoch_step(struct progress_seen *s, double step, double of)
{
    s->epoch_step = (int64_t)step;
    s->epoch_steps = (int64_t)of;
}

/* A bar of epochs: so many are done. */
static void take_epochs(struct progress_seen *s, const struct field *f)
{
    s->total_epochs = (int64_t)f->of;
    s->epoch = (int64_t)f->value + (f->value < f->of);
    s->epoch_fraction = f->value < f->of ? 0 : 1;
}

/* Rich's bar counts epochs from 0 to the last one's number. */
static void take_epoch_bar(struct progress_seen *s, const struct bar *b, const struct field *epoch)
{
    s->epoch = (int64_t)epoch->value + b->rich;
    s->total_epochs = isnan(epoch->of) ? -1 : (int64_t)epoch->of + b->rich;
    if (!isnan(b->at->of))
        bar_epoch_step(s, b->at->value, b->at->of);
}

void bar_take(const struct bar *b, const struct field *first, const struct field *epoch, bool has_loss,
              struct progress_seen *s)
{
    const bool numbered = first != b->at && is_numbered(first, b->words),
               whose = numbered || are_words_of_training(b->words) || has_loss;

    if (!whose || !bar_counts(b->at) || fields_aside(b->words) || !is_unit_of_training(b->unit))
        s->sideline = true;
    else if (!b->words.len && !has_loss && fields_has(b->unit, WORDS("it")) && b->rate >= DOWNLOAD_PER_S) {
        s->sideline = true;
        s->total_steps = isnan(b->at->of) ? -1 : (int64_t)b->at->of;
    } else if (numbered)
        take_epoch_bar(s, b, first);
    else if (epoch && epoch->start >= b->words.p && epoch->start < b->words.p + b->words.len)
        take_epoch_bar(s, b, epoch);
    else if (!isnan(b->at->of) && (fields_has(b->words, WORDS("epoch", "epochs")) ||
                                   fields_has(b->unit, WORDS("epoch", "epochs"))))
        take_epochs(s, b->at);
    else
        bar_loose(s, b->at);
}
