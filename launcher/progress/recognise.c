/* recognise.c - recognise a training's progress in one line of its output; split a stream into lines. */
#include "launcher/progress/recognise.h"
#include "common/cleanup.h"
#include "common/text.h"
#include "launcher/progress/line_tokens.h"

#include <math.h>
#include <string.h>

/* The meaning of a number, or of the first one of a pair. From ROLE_EPOCHS on: a total, one number of at
 * least 1. */
enum role {
    ROLE_SERIES, /* one run of several */
    ROLE_EPOCH,
    ROLE_STEP,
    ROLE_BATCH, /* a step of the epoch */
    ROLE_LOSS,
    ROLE_RATE,
    ROLE_EPOCHS,
    ROLE_STEPS,
    ROLE_TOTAL_EPOCHS,
    ROLE_TOTAL_STEPS,
    ROLES
};

#define TRAIN "train", "training"
#define ANY NULL
#define NO_WORD WORDS("")

#define RATES                                                                                                \
    WORDS("samples/s", "samples/s;", "samples/sec", "images/s", "images/sec", "img/s", "samples_per_s",      \
          "train_samples_per_second")

/* Words for one run of several. */
#define SERIES                                                                                               \
    WORDS("model", "seed", "run", "round", "client", "member", "learner", "task", "stage", "phase", "split")

/* The known forms, by the words before a number. */
static const struct form {
    enum role role;
    const char *const *key, *const *before; /* before: ANY, also none; "" in the list: none */
} FORMS[] = {
    {ROLE_SERIES, SERIES, ANY},
    {ROLE_EPOCH, WORDS("epoch"), WORDS("", TRAIN, "of", "starting", "finished", "info")},
    {ROLE_STEP, WORDS("step", "iter", "iteration"), WORDS("", TRAIN, "global", "info")},
    {ROLE_BATCH, WORDS("batch"), ANY},
    {ROLE_LOSS, WORDS("loss", "train_loss", "train/loss", "training_loss", "total_loss", "avg_loss"),
     WORDS("", TRAIN, "avg", "average", "total", "with")},
    {ROLE_RATE, RATES, ANY},
    {ROLE_EPOCHS, WORDS("epochs"), NO_WORD}, /* of our JSON */
    {ROLE_STEPS, WORDS("steps"), NO_WORD},
    {ROLE_TOTAL_EPOCHS, WORDS("epochs"), WORDS("num")}, /* Hugging Face Trainer */
    {ROLE_TOTAL_STEPS, WORDS("steps"), WORDS("optimization")},
};

/* The only words that a training's bar has before it and in its rate ("7.5it/s"). "g": Ultralytics'
 * memory. */
static const char *const OF_BARS[] = {
    TRAIN,   "epoch",   "epochs", "step",     "steps", "it",      "iter", "iters", "iteration", "iterations",
    "batch", "batches", "loss",   "progress", "fit",   "fitting", "s",    "g",     NULL};

/* Words after which the line is about something else than the training's position. */
static const char *const ASIDE[] = {
    "val",       "valid",    "validat*", "eval*",      "test",       "tests",    "testing",     "cv",
    "dev",       "sanity",   "predict*", "infer*",     "best",       "every",    "each",        "early",
    "download*", "fetch*",   "load*",    "save*",      "saving",     "restored", "checkpoint*", "comput*",
    "calculat*", "collect*", "shard*",   "tokeniz*",   "extract*",   "prepar*",  "preprocess*", "filter*",
    "cache",     "caching",  "generate", "generating", "generation", "sampling", "warmup",      NULL};

/* First words of the steps of an image's build. */
static const char *const BUILDS[] = {"add",        "arg",     "cmd",     "copy",        "entrypoint",
                                     "env",        "expose",  "from",    "healthcheck", "label",
                                     "maintainer", "onbuild", "run",     "shell",       "stopsignal",
                                     "user",       "volume",  "workdir", NULL};

enum { FEW_STEPS = 10 }; /* "Step 2/4: training" is a script's list of tasks, not training steps */

static const char TQDM[] = "%|", RICH[] = "\xe2\x94\x81", RICH_TIME[] = "\xe2\x80\xa2";

/* The first number of each role, and the bar. */
struct reading {
    struct sv line;
    const char *aside;       /* the first word of ASIDE, or the line's end; NULL: not searched yet */
    struct number of[ROLES]; /* start NULL: none */
    bool any_loss;           /* a loss with any words before it, on a line with an epoch */
    bool other_pair;         /* a pair without a role */
    struct sv words;         /* before the bar; p NULL: no bar */
    bool tqdm;
    bool other_number;      /* `words` have a number that is neither an epoch nor a loss */
    struct number numbered; /* "1/100" at the begin of `words`: Ultralytics' epoch */
    struct number bar;
};

static struct sv behind(struct sv line, const char *p)
{
    return (struct sv){p, (size_t)(line.p + line.len - p)};
}

static const char *find(struct sv text, const char *what)
{
    return memmem(text.p, text.len, what, strlen(what));
}

static bool has(const struct reading *r, enum role role)
{
    return r->of[role].start != NULL;
}

static bool is_pair(const struct number *n)
{
    return !isnan(n->of);
}

static bool is_count(const struct number *n)
{
    const double max = (double)PROGRESS_COUNT_MAX;

    return n->count && n->value <= max && !(n->of < 1 || n->of > max || n->value > n->of);
}

static bool is_dict(struct sv line)
{
    return sv_starts(line, "{'"); /* Hugging Face Trainer's line, which has fractional epochs */
}

/* Whether the number is possible for its role. */
static bool may_be(const struct reading *r, const struct number *n, enum role role)
{
    if (role == ROLE_LOSS)
        return !n->count; /* not the index of "Train loss 1200 0.512" */
    if (role == ROLE_RATE)
        return !is_pair(n) && n->value > 0;
    if (role == ROLE_EPOCH && is_dict(r->line))
        return !is_pair(n) && n->value < 1e9;
    if (role == ROLE_SERIES)
        return is_count(n) && (n->of > 1 || sv_starts(behind(r->line, n->end), " of "));
    return is_count(n) && (role < ROLE_EPOCHS || (!is_pair(n) && n->value >= 1));
}

/* "812 samples/s" */
static bool has_unit(const struct number *n, struct sv line)
{
    struct sv rest = sv_trim(behind(line, n->end)), unit = {0};

    rest.len = rest.len < 12 ? rest.len : 12; /* the longest unit is shorter */
    sv_next(&rest, ' ', &unit);
    return line_tokens_is(unit, RATES);
}

static enum role role_of(const struct reading *r, const struct number *n)
{
    for (size_t i = 0; i < ARRAY_LEN(FORMS); i++) {
        const struct form *f = &FORMS[i];
        const bool fits = !f->before || (n->before.len ? line_tokens_is(n->before, f->before) : !**f->before);
        if (fits && line_tokens_is(n->key, f->key) && may_be(r, n, f->role))
            return f->role;
    }
    return has_unit(n, r->line) && may_be(r, n, ROLE_RATE) ? ROLE_RATE : ROLES;
}

static bool is_aside(struct reading *r, const struct number *n)
{
    if (!r->aside && !(r->aside = line_tokens_find(r->line, ASIDE)))
        r->aside = r->line.p + r->line.len;
    return n->start >= r->aside;
}

static void take_number(struct reading *r, const struct number *n)
{
    enum role role = role_of(r, n);
    const bool aside = (role < ROLES || is_pair(n)) && is_aside(r, n);

    role = aside ? ROLES : role;
    r->any_loss = r->any_loss || line_tokens_find(n->key, WORDS("loss"));
    if (r->words.p && n->start < r->words.p + r->words.len) {
        if (n->start == r->line.p && is_pair(n) && is_count(n))
            r->numbered = *n;
        r->other_number = r->other_number || (role != ROLE_EPOCH && role != ROLE_LOSS);
    } else if (r->words.p && is_pair(n) && !r->bar.start) {
        r->bar = *n;
        return;
    }
    if (role == ROLE_LOSS && has(r, ROLE_LOSS))
        r->of[ROLE_LOSS].value = NAN; /* ambiguous */
    else if (role < ROLES && !has(r, role))
        r->of[role] = *n;
    if (is_pair(n) && is_count(n) && !aside)
        r->other_pair = r->other_pair || role == ROLES || sv_starts(behind(r->line, n->end), " of ");
}

static void find_bar(struct reading *r)
{
    const char *tqdm = find(r->line, TQDM), *begin = tqdm ? tqdm : find(r->line, RICH);

    while (tqdm && begin > r->line.p && sv_is_digit(begin[-1]))
        begin--;
    r->tqdm = tqdm != NULL;
    if (begin)
        r->words = (struct sv){r->line.p, (size_t)(begin - r->line.p)};
}

/* tqdm's ", 77.3it/s]" or ", 1.3s/it,"; the number is "?" at first. */
static struct sv rate_of_bar(const struct reading *r)
{
    struct sv rest = behind(r->line, r->bar.end), part = {0}, rate = {r->line.p, 0};

    sv_next(&rest, ',', &part);
    if (sv_next(&rest, ',', &part))
        sv_next(&part, ']', &rate);
    return sv_trim(rate);
}

/* 10,000 per second or more: no training loop is so fast, so the bar counts bytes. */
static bool is_download(struct sv rate)
{
    size_t digits = 0;

    while (digits < rate.len && sv_is_digit(rate.p[digits]))
        digits++;
    return digits >= 5;
}

/* Use "step 3/40"; progress.c decides whether it is of the epoch, unless in_epoch is set. */
static void step_of(struct progress_seen *s, const struct number *n, bool in_epoch)
{
    s->step = (int64_t)n->value;
    s->total_steps = is_pair(n) ? (int64_t)n->of : -1;
    s->in_epoch = in_epoch;
}

/* False: the bar is of something else, or ambiguous. */
static bool take_bar(const struct reading *r, struct progress_seen *s)
{
    const struct sv rate = rate_of_bar(r);
    const bool numbered = r->numbered.start, rich = find(r->line, RICH_TIME);
    const struct number *epoch = numbered ? &r->numbered : &r->of[ROLE_EPOCH];

    if (!is_count(&r->bar) || (epoch->start && epoch->start > r->bar.start) ||
        (r->other_number && !numbered) || !line_tokens_all(r->words, OF_BARS) ||
        (r->tqdm ? !rate.len || !line_tokens_all(rate, OF_BARS) : !epoch->start || rich == numbered))
        return false;
    if (epoch->start) {
        const int more = !r->tqdm && rich; /* Lightning counts from 0 to the last one's number */
        s->epoch = (int64_t)epoch->value + more;
        s->total_epochs = is_pair(epoch) ? (int64_t)epoch->of + more : -1;
        step_of(s, &r->bar, true);
    } else if (line_tokens_find(r->words, WORDS("epoch", "epochs")) ||
               line_tokens_find(rate, WORDS("epoch", "epochs"))) {
        s->epoch = (int64_t)r->bar.value + 1; /* at the end it shows one epoch too many */
        s->total_epochs = (int64_t)r->bar.of;
    } else {
        step_of(s, &r->bar, false);
        s->download = is_download(rate);
    }
    return true;
}

static void take_epoch(const struct reading *r, struct progress_seen *s)
{
    const struct number *epoch = &r->of[ROLE_EPOCH];

    s->epoch = (int64_t)epoch->value;
    s->total_epochs = is_pair(epoch) ? (int64_t)epoch->of : -1;
    if (is_dict(r->line)) { /* epochs done, such as 1.25 */
        s->epoch = epoch->value > 0 ? (int64_t)ceil(epoch->value) : 1;
        s->within = epoch->value - (double)(s->epoch - 1);
    }
}

/* "step":3,"steps":40 is "step 3/40". */
static void pair_up(struct reading *r, enum role one, enum role many)
{
    struct number *n = &r->of[one];

    if (n->start && !is_pair(n) && has(r, many) && n->value <= r->of[many].value)
        n->of = r->of[many].value;
}

/* Whether the line also has numbers of something else: "[2/5] epoch 10/10", "Task A: epoch 3/3", "step 3/10:
 * epoch 2/5". */
static bool leaves_open(const struct reading *r)
{
    const struct number *epoch = &r->of[ROLE_EPOCH], *step = &r->of[ROLE_STEP];
    const char *first = epoch->start ? epoch->start : step->start;

    return r->other_pair || (epoch->start && step->start && is_pair(step) && step->start < epoch->start) ||
           (first && line_tokens_find((struct sv){r->line.p, (size_t)(first - r->line.p)}, SERIES));
}

static void take_text(struct reading *r, struct progress_seen *s)
{
    const struct number *step = &r->of[ROLE_STEP], *batch = &r->of[ROLE_BATCH];
    const bool epoch = has(r, ROLE_EPOCH), json = has(r, ROLE_STEPS);

    pair_up(r, ROLE_EPOCH, ROLE_EPOCHS);
    pair_up(r, ROLE_STEP, ROLE_STEPS);
    if (epoch)
        take_epoch(r, s);
    if (has(r, ROLE_TOTAL_EPOCHS))
        s->total_epochs = (int64_t)r->of[ROLE_TOTAL_EPOCHS].value;
    if (has(r, ROLE_TOTAL_STEPS))
        s->total_steps = (int64_t)r->of[ROLE_TOTAL_STEPS].value;
    const bool counts = has(r, ROLE_STEP) && is_pair(step), total = epoch && s->total_epochs > 0;
    if (total && has(r, ROLE_BATCH) && is_pair(batch))
        step_of(s, batch, true);
    else if (epoch ? total && counts
                   : (counts && step->of >= FEW_STEPS) || (has(r, ROLE_STEP) && has(r, ROLE_LOSS)))
        step_of(s, step, json);
    else if (total && r->any_loss &&
             !line_tokens_find(r->line, WORDS("it", "iter*", "step*", "batch*", "update*")))
        s->within = 1; /* a line with epoch and loss comes at the epoch's end */
    if (leaves_open(r))
        s->step = s->total_steps = s->total_epochs = -1;
}

/* "Step 5/14 : RUN pip install" */
static bool is_build(const struct reading *r)
{
    const char *const end = r->of[ROLE_STEP].end;
    struct sv rest = end ? behind(r->line, end) : (struct sv){0}, word = {0};

    while (rest.len && (*rest.p == ' ' || *rest.p == ':'))
        rest = sv_skip(rest, 1);
    sv_next(&rest, ' ', &word);
    return line_tokens_is(word, BUILDS);
}

static void recognise_text(struct sv line, struct progress_seen *s)
{
    struct reading r = {.line = line};
    struct line_tokens t = {.rest = line};
    struct number n;

    find_bar(&r);
    while (line_tokens_next(&t, &n))
        take_number(&r, &n);
    if (is_build(&r))
        return;
    s->several = has(&r, ROLE_SERIES) || line_tokens_find(line, WORDS("fold", "trial", "episode"));
    if (r.bar.start) {
        if (!take_bar(&r, s))
            return;
    } else
        take_text(&r, s);
    /* a loss alone is ambiguous: "GPU 0 Loss: 147" may be a sum, or of a test */
    const struct number *loss = &r.of[ROLE_LOSS];
    if (loss->start && (s->step >= 0 || s->epoch >= 0 || line_tokens_find(loss->key, WORDS(TRAIN)) ||
                        line_tokens_is(loss->before, WORDS(TRAIN))))
        s->loss = loss->value;
    if (has(&r, ROLE_RATE))
        s->samples_per_second = r.of[ROLE_RATE].value;
}

/* Copy without escape sequences (colours, cursor). *digits: the text has digits. */
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
    return progress_says(ret);
}

static void end_line(struct recogniser *r, void (*seen)(void *ctx, const struct progress_seen *s), void *ctx)
{
    struct progress_seen s;

    if (r->len > 0 && recognise_line((struct sv){r->line, (size_t)r->len}, &s))
        seen(ctx, &s);
    r->len = 0;
}

void recogniser_take(struct recogniser *r, const char *bytes, size_t len,
                     void (*seen)(void *ctx, const struct progress_seen *s), void *ctx)
{
    for (size_t i = 0; i < len; i++)
        if (bytes[i] == '\n' || bytes[i] == '\r')
            end_line(r, seen, ctx);
        else if (r->len != RECOGNISER_GAP && r->len < RECOGNISE_LINE_BYTES)
            r->line[r->len++] = bytes[i];
}
