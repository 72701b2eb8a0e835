/* recognise.c - recognise a training's progress in one line of its output; cut a stream into such lines. */
#include "launcher/progress/recognise.h"
#include "common/cleanup.h"
#include "common/text.h"
#include "launcher/progress/tokens.h"

#include <math.h>
#include <string.h>
#include <strings.h>

/* What a number is: of a pair the first one. */
enum role {
    ROLE_EPOCH,
    ROLE_STEP,
    ROLE_BATCH, /* a step of the epoch */
    ROLE_EPOCHS,
    ROLE_STEPS,
    ROLE_BATCHSIZE,
    ROLE_TOTAL_EPOCHS,
    ROLE_TOTAL_STEPS,
    ROLE_LOSS,
    ROLES
};

#define TRAIN "train", "training"
#define ANY NULL
#define NO_WORD WORDS("")

static const char *const SAMPLES[] = {"samples/s",
                                      "samples/sec",
                                      "samples/second",
                                      "img/s",
                                      "imgs/s",
                                      "images/s",
                                      "images/sec",
                                      "examples/s",
                                      "examples/sec",
                                      "samples_per_second",
                                      "samples_per_s",
                                      "train_samples_per_second",
                                      NULL};

/* The forms that are known, by the words in front of a number. */
static const struct form {
    enum role role;
    const char *const *key, *const *before; /* before: ANY, or none too; "" in it: none */
    bool many;                              /* how many there are: one number, of 1 and more */
} FORMS[] = {
    {ROLE_EPOCH, WORDS("epoch"), ANY, false},
    {ROLE_STEP, WORDS("step", "iter", "iteration"),
     WORDS("", TRAIN, "global", "current", "learning", "finished", "completed", "info"), false},
    {ROLE_BATCH, WORDS("batch"), ANY, false},
    {ROLE_EPOCHS, WORDS("epochs"), NO_WORD, true}, /* of our JSON */
    {ROLE_STEPS, WORDS("steps"), NO_WORD, true},   /* the same, and "Epoch 0 | Batchsize: 32 | Steps: 64" */
    {ROLE_BATCHSIZE, WORDS("batchsize"), NO_WORD, true},
    {ROLE_TOTAL_EPOCHS, WORDS("epochs"), WORDS("num"), true},        /* Hugging Face Trainer */
    {ROLE_TOTAL_STEPS, WORDS("steps"), WORDS("optimization"), true}, /* the same */
    {ROLE_LOSS,
     WORDS("loss", "train_loss", "train/loss", "training_loss", "total_loss", "avg_loss", "avr_loss",
           "lm_loss"),
     WORDS("", TRAIN, "avg", "average", "mean", "running", "total", "lm", "with", "done"), false},
};

/* What a bar of a training has in front of it, or counts. */
static const char *const OF_BARS[] = {TRAIN,  "epoch", "epochs",    "step",       "steps",   "it",
                                      "iter", "iters", "iteration", "iterations", "batch",   "batches",
                                      "loss", "rank",  "progress",  "fit",        "fitting", NULL};

/* What tells of something else than training, or of another number than how far it is. */
static const char *const ASIDE[] = {
    "val",       "valid",    "validat*", "eval*",      "test",       "tests",    "testing",     "cv",
    "dev",       "sanity",   "predict*", "infer*",     "best",       "every",    "each",        "early",
    "download*", "fetch*",   "load*",    "save*",      "saving",     "restored", "checkpoint*", "comput*",
    "calculat*", "collect*", "shard*",   "tokeniz*",   "extract*",   "prepar*",  "preprocess*", "filter*",
    "cache",     "caching",  "generate", "generating", "generation", "sampling", "warmup",      NULL};

/* Side by side, not one after the other. */
static const char *const PLACES[] = {"rank", "gpu*", "world*", "node*", "host*", "worker*", NULL};

/* DOWNLOAD_PER_S: no loop of a training is so fast: what is counted is bytes. FEW_STEPS: "Step 2/4: training" is of a list of what a
 * script does. */
enum { DOWNLOAD_PER_S = 10000, FEW_STEPS = 10 };

/* The first number of each role, and the bar. */
struct reading {
    struct sv line;
    struct number first, of[ROLES], bar;
    bool has[ROLES], has_bar, tqdm;
    bool has_any_loss;         /* whatever words stand in front of it: it is printed behind an epoch */
    double samples_per_second; /* 0: none */
    bool twice;                /* two losses have the same name */
    bool boxed;                /* a pair that has no name stands behind the epoch */
    bool aside;                /* a word tells of something else than training */
    bool series; /* the line is of one of several runs: "Fold 1/5, epoch 3/3", "step 5/10 of level 3" */
    const char *looked; /* so far */
    struct sv words;    /* in front of the bar */
    const char *drawn;  /* where a bar of Rich or Ultralytics begins; NULL: nowhere */
    const char *dot;    /* Rich's, behind it */
};

static struct sv behind(struct sv line, const char *p)
{
    return (struct sv){p, (size_t)(line.p + line.len - p)};
}

static struct sv until(struct sv line, const char *p)
{
    return sv_trim((struct sv){line.p, (size_t)(p - line.p)});
}

static const char *find(struct sv text, const char *what)
{
    return text.len ? memmem(text.p, text.len, what, strlen(what)) : NULL;
}

static bool is_pair(const struct number *n)
{
    return !isnan(n->of);
}

static bool is_count(const struct number *n)
{
    return n->count && n->value >= 0 && n->value <= (double)PROGRESS_COUNT_MAX &&
           (!is_pair(n) || (n->of >= 1 && n->of <= (double)PROGRESS_COUNT_MAX && n->value <= n->of));
}

static bool is_of_train(const struct number *loss)
{
    return tokens_has(loss->key, WORDS(TRAIN)) || tokens_is(loss->before, WORDS(TRAIN));
}

/* Not the index of "Train loss 1200 0.512", and not "1,234", which may be a decimal comma. */
static bool is_loss(const struct number *n, struct sv line)
{
    const struct sv rest = behind(line, n->end);

    return !memchr(n->start, ',', (size_t)(n->end - n->start)) &&
           !(n->count && rest.len > 1 && rest.p[0] == ' ' && sv_is_digit(rest.p[1]));
}

/* Whether a word in front of the number tells of something else than training: "Test: epoch 3". */
static bool is_aside(struct reading *r, const struct number *n)
{
    r->aside = r->aside || tokens_has((struct sv){r->looked, (size_t)(n->start - r->looked)}, ASIDE);
    r->looked = n->start;
    return r->aside || tokens_is(n->before, WORDS("per"));
}

static bool fits(const struct form *f, const struct number *n)
{
    return tokens_is(n->key, f->key) &&
           (!f->before || (n->before.len ? tokens_is(n->before, f->before) : !**f->before));
}

/* Whether the number may be what its words say. */
static bool may_be(struct reading *r, const struct number *n, const struct form *f)
{
    if (is_aside(r, n))
        return false;
    if (f->role == ROLE_LOSS)
        return is_loss(n, r->line);
    if (f->role == ROLE_EPOCH && !is_pair(n)) /* Hugging Face Trainer has fractions */
        return n->value >= 0 && n->value < 1e9 && (n->count || sv_starts(r->line, "{'"));
    return is_count(n) && !(f->many && (is_pair(n) || n->value < 1));
}

/* False: it has none of the forms. */
static bool take_form(struct reading *r, const struct number *n)
{
    bool taken = false;

    for (size_t i = 0; i < ARRAY_LEN(FORMS); i++) {
        const enum role role = FORMS[i].role;
        const bool again = r->has[role];
        if ((again && role != ROLE_LOSS) || !fits(&FORMS[i], n) || !may_be(r, n, &FORMS[i]))
            continue;
        const struct sv former = r->of[role].key;
        r->twice = r->twice ||
                   (again && former.len == n->key.len && strncasecmp(former.p, n->key.p, former.len) == 0);
        if (!again)
            r->of[role] = *n;
        r->has[role] = taken = true;
    }
    return taken;
}

/* "812 samples/s", but of "0.4 samples/s: 12" that is the next number's key. */
static bool has_unit(const struct number *n, struct sv line)
{
    const struct sv rest = sv_trim(behind(line, n->end));
    size_t len = 0;

    while (len < rest.len && ((rest.p[len] >= 'a' && rest.p[len] <= 'z') || rest.p[len] == '/'))
        len++;
    return tokens_is((struct sv){rest.p, len}, SAMPLES) && !(len < rest.len && strchr(":=", rest.p[len]));
}

/* "812 samples/s" and "samples/s: 812"; false: the number is none, or not the first one. */
static bool take_rate(struct reading *r, const struct number *n)
{
    if (r->samples_per_second > 0 || n->value <= 0 || !(tokens_is(n->key, SAMPLES) || has_unit(n, r->line)) ||
        tokens_has(n->key, ASIDE) || tokens_has(n->before, ASIDE))
        return false;
    r->samples_per_second = n->value;
    return true;
}

/* False: its key has no part "loss", or one before it had. */
static bool take_any_loss(struct reading *r, const struct number *n)
{
    if (r->has_any_loss || !tokens_has(n->key, WORDS("loss")))
        return false;
    r->has_any_loss = true;
    return true;
}

static void take_number(struct reading *r, const struct number *n)
{
    const bool inner = r->has_bar || r->has[ROLE_EPOCH] || r->has[ROLE_STEP];
    const struct sv rest = sv_trim(behind(r->line, n->end));
    const bool is_date = rest.len && sv_is_digit(*rest.p); /* "11/24 10:00:00" */

    r->boxed = r->boxed || (r->has[ROLE_EPOCH] && is_pair(n) && n->count && !n->key.len);
    const bool form = take_form(r, n), loss = take_any_loss(r, n), rate = take_rate(r, n);
    const bool taken = form || loss || rate;
    r->series = r->series || (is_pair(n) && (taken ? sv_starts(rest, "of ") && !sv_starts(rest, "of epoch")
                                                   : is_count(n) && n->key.len && !inner && !is_date &&
                                                         !tokens_has(n->key, PLACES)));
}

/* "[00:12" or "[1:00:12". */
static bool is_time(struct sv s)
{
    size_t n = 1;

    while (n < s.len && n < 5 && sv_is_digit(s.p[n]))
        n++;
    return s.len > n + 2 && n > 1 && *s.p == '[' && s.p[n] == ':' && sv_is_digit(s.p[n + 1]) &&
           sv_is_digit(s.p[n + 2]);
}

/* "1/100  2.3G  0.05: 20%|##": the line begins with the epoch. */
static bool is_numbered(const struct reading *r)
{
    return r->first.start == r->line.p && is_pair(&r->first) && is_count(&r->first);
}

/* Whether the number is what a bar counts, and which words stand in front of the bar. */
static bool find_bar(struct reading *r, const struct number *n)
{
    const struct sv rest = behind(r->line, n->end), front = until(r->line, n->start);
    const bool rich = r->dot && r->dot > n->end,
               drawn = r->drawn && r->drawn < n->start && (rich || is_numbered(r));

    r->tqdm = is_pair(n) ? is_time(sv_trim(rest)) : sv_starts(rest, "it [") && is_time(sv_skip(rest, 3));
    if (!r->tqdm && !(is_pair(n) && drawn))
        return false;
    const char *begin = r->tqdm ? find(front, "%|") : r->drawn;
    while (r->tqdm && begin && begin > front.p && sv_is_digit(begin[-1]))
        begin--;
    r->words = begin ? until(front, begin) : front;
    r->bar = *n;
    return true;
}

/* tqdm's ", 77.3it/s]" or ", 1.3s/it,", of which the number is "?" at first. */
static struct sv unit_of_bar(const struct reading *r, double *per_s)
{
    const char *comma = r->tqdm ? find(behind(r->line, r->bar.end), ",") : NULL;
    struct sv rate = sv_trim(comma ? behind(r->line, comma + 1) : (struct sv){r->line.p, 0});
    size_t n = 0, len = 0;

    while (len < rate.len && rate.p[len] != ',' && rate.p[len] != ']')
        len++;
    while (n < len && (sv_is_digit(rate.p[n]) || rate.p[n] == '.' || rate.p[n] == '?'))
        n++;
    if (!sv_f64((struct sv){rate.p, n}, per_s))
        *per_s = NAN;
    const struct sv unit = sv_trim((struct sv){rate.p + n, len - n});
    if (sv_starts(unit, "s/"))
        return sv_skip(unit, 2);
    return sv_ends(unit, "/s") ? (struct sv){unit.p, unit.len - 2} : (struct sv){unit.p, 0};
}

static void step_of_any(struct progress_seen *s, const struct number *n, bool bar)
{
    s->step = (int64_t)n->value;
    s->total_steps = is_pair(n) ? (int64_t)n->of : -1;
    s->bar = bar;
}

static void step_of_epoch(struct progress_seen *s, double step, double steps)
{
    s->epoch_step = (int64_t)step;
    s->epoch_steps = (int64_t)steps;
}

/* Rich's bar counts epochs from 0 to the last one's number. */
static void epoch_bar(const struct reading *r, const struct number *epoch, struct progress_seen *s)
{
    const int rich = r->dot != NULL && !r->tqdm;

    s->epoch = (int64_t)epoch->value + rich;
    s->total_epochs = is_pair(epoch) ? (int64_t)epoch->of + rich : -1;
    if (is_pair(&r->bar))
        step_of_epoch(s, r->bar.value, r->bar.of);
}

/* A bar of epochs: so many are done. */
static void bar_of_epochs(const struct number *n, struct progress_seen *s)
{
    s->total_epochs = (int64_t)n->of;
    s->epoch = (int64_t)n->value + (n->value < n->of);
    s->epoch_fraction = n->value < n->of ? 0 : 1;
}

/* False: it is of something else. */
static bool take_bar(const struct reading *r, struct progress_seen *s)
{
    double per_s;
    const struct sv unit = unit_of_bar(r, &per_s);
    const bool numbered = is_numbered(r) && r->first.start != r->bar.start,
               bare = !r->words.len && !r->has[ROLE_LOSS];
    const bool epoch = r->has[ROLE_EPOCH] && r->of[ROLE_EPOCH].start < r->bar.start;

    if (!is_count(&r->bar) || tokens_has(r->words, ASIDE) || (r->tqdm && !tokens_is(unit, OF_BARS)) ||
        !(numbered || bare || r->has[ROLE_LOSS] || tokens_has(r->words, OF_BARS)))
        return false;
    if (bare && per_s >= DOWNLOAD_PER_S) {
        s->download = is_pair(&r->bar);
        s->total_steps = s->download ? (int64_t)r->bar.of : -1;
    } else if (numbered || epoch)
        epoch_bar(r, numbered ? &r->first : &r->of[ROLE_EPOCH], s);
    else if (is_pair(&r->bar) &&
             (tokens_has(r->words, WORDS("epoch", "epochs")) || tokens_is(unit, WORDS("epoch", "epochs"))))
        bar_of_epochs(&r->bar, s);
    else if (r->tqdm)
        step_of_any(s, &r->bar, true);
    return true;
}

static void take_epoch(const struct reading *r, struct progress_seen *s)
{
    const struct number *epoch = &r->of[ROLE_EPOCH];

    if (is_pair(epoch)) {
        s->total_epochs = r->boxed ? -1 : (int64_t)epoch->of;
        s->epoch = (int64_t)epoch->value;
    } else if (sv_starts(r->line, "{'")) {
        /* {'loss': 0.5, 'epoch': 1.25}: so many are done; the one under way, or that has just ended, is not before it */
        const double before = epoch->value > 0 ? ceil(epoch->value) - 1 : 0;
        s->epoch = (int64_t)before + 1;
        s->epoch_fraction = epoch->value - before;
    } else {
        s->epoch = (int64_t)epoch->value;
        s->total_epochs = r->has[ROLE_EPOCHS] ? (int64_t)r->of[ROLE_EPOCHS].value : -1;
    }
}

/* Whether "step 3/40" counts, and of what is for position.c to say. Beside an epoch without its total, and in front of the epoch, nothing
 * tells. */
static bool step_counts(const struct reading *r)
{
    const struct number *step = &r->of[ROLE_STEP], *epoch = &r->of[ROLE_EPOCH];

    if (!r->has[ROLE_STEP] || !is_pair(step))
        return false;
    return r->has[ROLE_EPOCH] ? is_pair(epoch) && !r->boxed && epoch->start < step->start
                              : step->of >= FEW_STEPS || r->has[ROLE_LOSS];
}

static void take_text(const struct reading *r, struct progress_seen *s)
{
    const struct number *step = &r->of[ROLE_STEP], *batch = &r->of[ROLE_BATCH], *steps = &r->of[ROLE_STEPS];
    const bool epoch = r->has[ROLE_EPOCH], single = r->has[ROLE_STEP] && !is_pair(step);

    if (epoch)
        take_epoch(r, s);
    if (r->has[ROLE_TOTAL_EPOCHS])
        s->total_epochs = (int64_t)r->of[ROLE_TOTAL_EPOCHS].value;
    if (r->has[ROLE_TOTAL_STEPS])
        s->total_steps = (int64_t)r->of[ROLE_TOTAL_STEPS].value;
    if (epoch && r->has[ROLE_BATCH] && is_pair(batch) && s->total_epochs >= 0)
        step_of_epoch(s, batch->value, batch->of);
    else if (step_counts(r) || (single && !epoch && r->has[ROLE_LOSS]))
        step_of_any(s, step, false);
    else if (single && epoch && r->has[ROLE_STEPS] && step->value <= steps->value)
        step_of_epoch(s, step->value, steps->value);
    else if (epoch && r->has[ROLE_BATCHSIZE] && r->has[ROLE_STEPS])
        s->epoch_steps = (int64_t)steps->value;
    else if (epoch && s->total_epochs >= 0 && r->has_any_loss &&
             !tokens_has(r->line, WORDS("it", "iter*", "step*", "batch*", "update*")))
        s->epoch_fraction = 1; /* a loss stands behind an epoch that has ended */
}

/* A bar of one of the steps that the line counts, or behind "1|10|", which says not what it is. */
static bool is_of_step(const struct reading *r)
{
    const bool step =
        r->has[ROLE_STEP] && is_pair(&r->of[ROLE_STEP]) && r->of[ROLE_STEP].start < r->bar.start;

    return r->has_bar && (step || (!is_pair(&r->first) && sv_starts(behind(r->line, r->first.end), "|")));
}

static void recognise_text(struct sv line, struct progress_seen *s)
{
    struct reading r = {.line = line, .looked = line.p, .drawn = find(line, "\xe2\x94\x81")};
    struct tokens t = {.rest = line};
    struct number n;

    r.dot = r.drawn ? find(behind(line, r.drawn), "\xe2\x80\xa2") : NULL;
    for (bool first = true; tokens_next(&t, &n); first = false) {
        r.first = first ? n : r.first;
        r.has_bar = r.has_bar || find_bar(&r, &n);
        take_number(&r, &n);
    }
    if (r.has_bar && !take_bar(&r, s))
        return;
    if (!r.has_bar)
        take_text(&r, s);
    if (r.series || is_of_step(&r) || tokens_has(line, WORDS("fold", "trial", "episode")))
        s->step = s->total_steps = s->total_epochs = s->epoch_step = s->epoch_steps = -1;
    /* a loss alone says not whose it is: a line like "GPU 0 Loss: 147" has a sum, or a test's */
    if (r.has[ROLE_LOSS] && !r.twice && (s->step >= 0 || s->epoch >= 0 || is_of_train(&r.of[ROLE_LOSS])))
        s->loss = r.of[ROLE_LOSS].value;
    if (r.samples_per_second > 0)
        s->samples_per_second = r.samples_per_second;
}

static bool says_something(const struct progress_seen *s)
{
    return s->step >= 0 || s->total_steps >= 0 || s->epoch >= 0 || s->total_epochs >= 0 ||
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
