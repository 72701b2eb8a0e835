/* question_lines.c - a JSON object per line, its texts into tokens. */
#include "trainer/generate/questions_state.h"

#include "trainer/checkpoint/json_scan.h"
#include "trainer/data/gzfile.h"
#include "trainer/text/encoder.h"

#include <inttypes.h>
#include <string.h>

#define EXPECTED "expected an object: {\"ctx\": ..., \"endings\": [...], \"label\": ...}"

struct line {
    const char *context;
    const char *ending[CHOICE_ENDINGS_MAX];
    int endings;
    int64_t label;
};

static int take_text(struct json_scan *s, struct arena *a, const char **ret)
{
    size_t most = (size_t)(s->end - s->p) + 1; /* escapes are longer than what they stand for */
    char *text = arena_alloc(a, most);

    *ret = text;
    return json_scan_string(s, text, most);
}

static int take_endings(struct json_scan *s, struct arena *a, struct line *l, struct err *err)
{
    if (!json_scan_take(s, '['))
        return err_set(err, ERR_INVALID, "endings: expected a list of texts");
    do {
        if (l->endings == CHOICE_ENDINGS_MAX)
            return err_set(err, ERR_INVALID, "endings: more than %d", CHOICE_ENDINGS_MAX);
        if (take_text(s, a, &l->ending[l->endings]))
            return err_set(err, ERR_INVALID, "endings[%d]: expected text", l->endings);
        l->endings++;
    } while (json_scan_take(s, ','));
    return json_scan_take(s, ']') ? 0 : err_set(err, ERR_INVALID, "endings: expected a ]");
}

static int take_member(struct json_scan *s, struct arena *a, struct line *l, struct err *err)
{
    char key[64];

    if (json_scan_string(s, key, sizeof(key)) || !json_scan_take(s, ':'))
        return err_set(err, ERR_INVALID, EXPECTED);
    if (strcmp(key, "ctx") == 0)
        return take_text(s, a, &l->context) ? err_set(err, ERR_INVALID, "ctx: expected text") : 0;
    if (strcmp(key, "endings") == 0) {
        l->endings = 0;
        return take_endings(s, a, l, err);
    }
    if (strcmp(key, "label") == 0)
        return json_scan_integer(s, &l->label) ? err_set(err, ERR_INVALID, "label: expected a number from 0")
                                               : 0;
    return json_scan_skip(s) ? err_set(err, ERR_INVALID, "%s: no JSON", key) : 0;
}

static int parse(const char *text, size_t len, struct arena *a, struct line *l, struct err *err)
{
    struct json_scan s = {text, text + len};

    *l = (struct line){.label = -1};
    if (!json_scan_take(&s, '{'))
        return err_set(err, ERR_INVALID, EXPECTED);
    do
        if (take_member(&s, a, l, err))
            return -1;
    while (json_scan_take(&s, ','));
    if (!json_scan_take(&s, '}') || !json_scan_ended(&s))
        return err_set(err, ERR_INVALID, "expected the object's end");
    if (!l->context || l->endings < 2 || l->label < 0 || l->label >= l->endings)
        return err_set(err, ERR_INVALID, "expected ctx, endings: 2..%d, and label: the number of one of them",
                       CHOICE_ENDINGS_MAX);
    return 0;
}

static int keep(void *ctx, const uint16_t *tokens, size_t n, struct err *err)
{
    return buf_append(ctx, tokens, n * sizeof(*tokens), err);
}

/* `text` behind `before`, as tokens that live as long as the questions. */
static int encode(struct questions *q, struct bpe *bpe, const char *before, const char *text,
                  struct choice_tokens *ret, struct err *err)
{
    cleanup_buf struct buf tokens = BUF_INIT(2 * QUESTIONS_LINE_BYTES); /* a byte is a token at most */
    const struct encoder_sink sink = {keep, &tokens};
    cleanup_encoder struct encoder e = {0};

    if (encoder_make(&e, bpe, &sink, false, err) || encoder_put(&e, before, strlen(before), err) ||
        encoder_put(&e, text, strlen(text), err) || encoder_end(&e, err))
        return -1;
    q->tokens += tokens.len / sizeof(uint16_t);
    if (q->tokens > QUESTIONS_BYTES_MAX / sizeof(uint16_t))
        return err_set(err, ERR_INVALID, "more than %zu tokens in all questions",
                       QUESTIONS_BYTES_MAX / sizeof(uint16_t));
    if (!tokens.len)
        return err_set(err, ERR_INVALID, "expected a context and an ending that are not empty");
    uint16_t *kept = arena_alloc(&q->arena, tokens.len);
    memcpy(kept, tokens.data, tokens.len);
    *ret = (struct choice_tokens){kept, tokens.len / sizeof(*kept)};
    return 0;
}

static int add_line(struct questions *q, struct bpe *bpe, const char *text, size_t len, struct err *err)
{
    cleanup_arena struct arena a = {0};
    struct line l;

    if (parse(text, len, &a, &l, err))
        return -1;
    struct choice_question more = {.endings = l.endings, .answer = (int)l.label};
    if (encode(q, bpe, "", l.context, &more.context, err))
        return -1;
    for (int i = 0; i < l.endings; i++)
        if (encode(q, bpe, " ", l.ending[i], &more.ending[i], err))
            return -1;
    return questions_add(q, &more, err);
}

/* All whole lines of `text`; at the file's end the rest too. */
static int add_lines(struct questions *q, struct bpe *bpe, struct buf *text, bool ended, int64_t *line,
                     struct err *err)
{
    size_t used = 0;

    while (used < text->len && !questions_enough(q)) {
        const char *from = text->data + used;
        const char *end = memchr(from, '\n', text->len - used);
        if (!end && !ended)
            break;
        size_t len = end ? (size_t)(end - from) : text->len - used;
        ++*line;
        if (len && add_line(q, bpe, from, len, err))
            return err_wrap(err, "%.100s:%" PRId64, q->path, *line);
        used += len + (end != NULL);
    }
    buf_consume(text, used);
    return 0;
}

int questions_read_lines(struct questions *q, struct bpe *bpe, struct err *err)
{
    cleanup_gzfile struct gzfile *g = gzfile_open(q->path, err);
    cleanup_buf struct buf text = BUF_INIT(QUESTIONS_LINE_BYTES);
    char block[16384];
    size_t len = sizeof(block);
    int64_t line = 0;

    while (g && len == sizeof(block) && !questions_enough(q)) {
        if (gzfile_read(g, block, sizeof(block), &len, err))
            return -1;
        if (buf_append(&text, block, len, err))
            return err_wrap(err, "%.100s:%" PRId64, q->path, line + 1);
        if (add_lines(q, bpe, &text, len < sizeof(block), &line, err))
            return -1;
    }
    return g ? 0 : -1;
}
