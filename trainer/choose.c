/* choose.c - `trainer choose`: questions with several endings, as HellaSwag's, and how many a GPT-2 gets right. */
#include "trainer/command.h"

#include "trainer/checkpoint/json_scan.h"
#include "trainer/data/gzfile.h"
#include "trainer/generate/choice.h"
#include "trainer/speaker.h"
#include "trainer/text/encoder.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum { LINE_MAX_BYTES = 1 << 18, ENDINGS_MAX = 16, TOKENS_MAX = 1 << 16 };

struct options {
    struct speaker_options speaker; /* first */
    const char *questions;
    int64_t limit;
    bool help;
};

#define AT(field) offsetof(struct options, field)

static const struct option_row ROWS[] = {
    {"questions", "FILE", OPTION_TEXT, AT(questions),
     .help =
         "A question per line, gzip-compressed or not: {\"ctx\": TEXT, \"endings\": [TEXT, ...], \"label\": "
         "NUMBER from 0}, as HellaSwag's files have it; other fields are passed over. A space is put before "
         "each ending."},
    {"limit", "N", OPTION_INTEGER, AT(limit), 1, INT32_MAX, .help = "The first N questions. Default: all."},
    SPEAKER_ROWS,
    {"help", NULL, OPTION_FLAG, AT(help), .help = "This text."},
};

struct question {
    const char *context;
    const char *ending[ENDINGS_MAX];
    int endings;
    int64_t label;
};

struct tokens_of {
    uint16_t token[TOKENS_MAX];
    size_t len;
};

struct chooser {
    const struct options *o;
    FILE *out;
    struct speaker speaker;
    struct tokens_of *context, *ending;
    int64_t asked, by_sum, by_mean;
};

static void release(struct chooser *c)
{
    speaker_close(&c->speaker);
    free(c->context);
    free(c->ending);
}

static int keep(void *ctx, const uint16_t *tokens, size_t n, struct err *err)
{
    struct tokens_of *t = ctx;

    if (n > TOKENS_MAX - t->len)
        return err_set(err, ERR_INVALID, "more than %d tokens", TOKENS_MAX);
    memcpy(t->token + t->len, tokens, n * sizeof(*tokens));
    t->len += n;
    return 0;
}

/* `text` behind `before`. */
static int encode(struct chooser *c, const char *before, const char *text, struct tokens_of *to,
                  struct err *err)
{
    const struct encoder_sink sink = {keep, to};
    cleanup_encoder struct encoder e = {0};

    to->len = 0;
    return encoder_make(&e, c->speaker.bpe, &sink, false, err) ||
                   encoder_put(&e, before, strlen(before), err) || encoder_put(&e, text, strlen(text), err) ||
                   encoder_end(&e, err)
               ? -1
               : 0;
}

static int ask(struct chooser *c, const struct question *q, struct err *err)
{
    double best_sum = 0, best_mean = 0;
    int sum = 0, mean = 0;

    if (encode(c, "", q->context, c->context, err))
        return -1;
    const struct choice_tokens context = {c->context->token, c->context->len};
    for (int i = 0; i < q->endings; i++) {
        double score;
        if (encode(c, " ", q->ending[i], c->ending, err))
            return -1;
        const struct choice_tokens ending = {c->ending->token, c->ending->len};
        if (choice_score(c->speaker.decoder, &context, &ending, &score, err))
            return -1;
        if (i == 0 || score > best_sum) {
            best_sum = score;
            sum = i;
        }
        if (i == 0 || score / (double)ending.len > best_mean) {
            best_mean = score / (double)ending.len;
            mean = i;
        }
    }
    c->asked++;
    c->by_sum += sum == q->label;
    c->by_mean += mean == q->label;
    return 0;
}

static int take_text(struct json_scan *s, struct arena *a, const char **ret)
{
    size_t most = (size_t)(s->end - s->p) + 1; /* escapes are longer than what they stand for */
    char *text = arena_alloc(a, most);

    *ret = text;
    return json_scan_string(s, text, most);
}

static int take_endings(struct json_scan *s, struct arena *a, struct question *q, struct err *err)
{
    if (!json_scan_take(s, '['))
        return err_set(err, ERR_INVALID, "endings: expected a list of texts");
    do {
        if (q->endings == ENDINGS_MAX)
            return err_set(err, ERR_INVALID, "endings: more than %d", ENDINGS_MAX);
        if (take_text(s, a, &q->ending[q->endings]))
            return err_set(err, ERR_INVALID, "endings[%d]: expected text", q->endings);
        q->endings++;
    } while (json_scan_take(s, ','));
    return json_scan_take(s, ']') ? 0 : err_set(err, ERR_INVALID, "endings: expected a ]");
}

static int take_member(struct json_scan *s, struct arena *a, struct question *q, struct err *err)
{
    char key[64];

    if (json_scan_string(s, key, sizeof(key)) || !json_scan_take(s, ':'))
        return err_set(err, ERR_INVALID,
                       "expected an object: {\"ctx\": ..., \"endings\": [...], \"label\": ...}");
    if (strcmp(key, "ctx") == 0)
        return take_text(s, a, &q->context) ? err_set(err, ERR_INVALID, "ctx: expected text") : 0;
    if (strcmp(key, "endings") == 0) {
        q->endings = 0;
        return take_endings(s, a, q, err);
    }
    if (strcmp(key, "label") == 0)
        return json_scan_integer(s, &q->label) ? err_set(err, ERR_INVALID, "label: expected a number from 0")
                                               : 0;
    return json_scan_skip(s) ? err_set(err, ERR_INVALID, "%s: no JSON", key) : 0;
}

static int parse(const char *line, size_t len, struct arena *a, struct question *q, struct err *err)
{
    struct json_scan s = {line, line + len};

    *q = (struct question){.label = -1};
    if (!json_scan_take(&s, '{'))
        return err_set(err, ERR_INVALID,
                       "expected an object: {\"ctx\": ..., \"endings\": [...], \"label\": ...}");
    do
        if (take_member(&s, a, q, err))
            return -1;
    while (json_scan_take(&s, ','));
    if (!json_scan_take(&s, '}') || !json_scan_ended(&s))
        return err_set(err, ERR_INVALID, "expected the object's end");
    if (!q->context || q->endings < 2 || q->label < 0 || q->label >= q->endings)
        return err_set(err, ERR_INVALID, "expected ctx, endings: 2..%d, and label: the number of one of them",
                       ENDINGS_MAX);
    return 0;
}

static int ask_line(struct chooser *c, const char *line, size_t len, struct err *err)
{
    cleanup_arena struct arena a = {0};
    struct question q;

    return parse(line, len, &a, &q, err) || ask(c, &q, err) ? -1 : 0;
}

static bool enough(const struct chooser *c)
{
    return c->o->limit && c->asked == c->o->limit;
}

/* All whole lines of `text`; at the file's end the rest too. */
static int ask_lines(struct chooser *c, struct buf *text, bool ended, int64_t *line, struct err *err)
{
    size_t used = 0;

    while (used < text->len && !enough(c)) {
        const char *from = text->data + used;
        const char *end = memchr(from, '\n', text->len - used);
        if (!end && !ended)
            break;
        size_t len = end ? (size_t)(end - from) : text->len - used;
        ++*line;
        if (len && ask_line(c, from, len, err))
            return err_wrap(err, "%.100s:%" PRId64, c->o->questions, *line);
        used += len + (end != NULL);
    }
    buf_consume(text, used);
    return 0;
}

static int ask_all(struct chooser *c, struct err *err)
{
    cleanup_gzfile struct gzfile *g = gzfile_open(c->o->questions, err);
    cleanup_buf struct buf text = BUF_INIT(LINE_MAX_BYTES);
    char block[16384];
    size_t len = sizeof(block);
    int64_t line = 0;

    while (g && len == sizeof(block) && !enough(c)) {
        if (gzfile_read(g, block, sizeof(block), &len, err))
            return -1;
        if (buf_append(&text, block, len, err))
            return err_wrap(err, "%.100s:%" PRId64, c->o->questions, line + 1);
        if (ask_lines(c, &text, len < sizeof(block), &line, err))
            return -1;
    }
    if (!g)
        return -1;
    return c->asked ? 0 : err_set(err, ERR_INVALID, "%.160s: no question in it", c->o->questions);
}

static int choose(struct chooser *c, struct err *err)
{
    if (!c->o->questions)
        return err_set(err, ERR_INVALID, "expected --questions FILE (trainer choose --help)");
    c->context = calloc(1, sizeof(*c->context));
    c->ending = calloc(1, sizeof(*c->ending));
    if (!c->context || !c->ending)
        return err_set(err, ERR_FATAL, "no memory for questions");
    if (speaker_open(&c->speaker, &c->o->speaker, err) || ask_all(c, err))
        return -1;
    fprintf(c->out, "%" PRId64 " questions: accuracy %.4f by sums, %.4f by means\n", c->asked,
            (double)c->by_sum / (double)c->asked, (double)c->by_mean / (double)c->asked);
    return 0;
}

static int run(const struct command *command, int argc, char *const *argv, FILE *out, struct err *err)
{
    const struct option_table table = {command->row, command->rows, speaker_take_name, NULL};
    struct options o = {0};
    struct chooser c __attribute__((cleanup(release))) = {.o = &o, .out = out};

    if (option_parse(&table, argc, argv, &o, err))
        return -1;
    if (o.help) {
        command_help(command, out);
        return 0;
    }
    return choose(&c, err);
}

const struct command command_choose = {
    .name = "choose",
    .synopsis = "[NAME|FILE.yaml] --init_from FILE --questions FILE [options]",
    .about = "Asks a trained GPT-2 which of several endings goes with a text, and says how often it is "
             "right: by the sum of "
             "the logarithms of an ending's tokens, and by their mean, which does not favour short ones.",
    .row = ROWS,
    .rows = ARRAY_LEN(ROWS),
    .main = run,
};
