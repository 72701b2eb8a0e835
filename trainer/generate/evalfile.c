/* evalfile.c - words, each looked at before it is believed. */
#include "trainer/generate/evalfile.h"

#include <inttypes.h>
#include <string.h>

enum { START = 65535, HEAD_WORDS = 5 };

static uint32_t header_word(const void *bytes, int i)
{
    const uint8_t *p = (const uint8_t *)bytes + 4 * i;

    return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

int evalfile_open(struct evalfile *f, const char *path, const void *bytes, size_t len, struct err *err)
{
    if (len < EVALFILE_HEADER || len % 2)
        return err_set(err, ERR_INVALID, "%.160s: size: %zu bytes, expected a header of %d, then words of 2",
                       path, len, EVALFILE_HEADER);
    if (header_word(bytes, 0) != EVALFILE_MAGIC)
        return err_set(err, ERR_INVALID, "%.160s: magic: %" PRIu32 ", expected %d: questions", path,
                       header_word(bytes, 0), EVALFILE_MAGIC);
    if (header_word(bytes, 1) != EVALFILE_VERSION)
        return err_set(err, ERR_INVALID, "%.160s: version: %" PRIu32 ", expected %d", path,
                       header_word(bytes, 1), EVALFILE_VERSION);
    if (!header_word(bytes, 2) || header_word(bytes, 2) > EVALFILE_COUNT_MAX)
        return err_set(err, ERR_INVALID, "%.160s: questions: %" PRIu32 ", expected 1..%d", path,
                       header_word(bytes, 2), EVALFILE_COUNT_MAX);
    *f = (struct evalfile){.path = path,
                           .word = (const uint16_t *)bytes + EVALFILE_HEADER / 2,
                           .words = (len - EVALFILE_HEADER) / 2,
                           .count = header_word(bytes, 2)};
    return 0;
}

static int wrong(const struct evalfile *f, const char *field, size_t value, const char *want, struct err *err)
{
    return err_set(err, ERR_INVALID, "%.120s: question %" PRId64 ": %s: %zu, expected %s", f->path, f->next,
                   field, value, want);
}

/* The words of the question at `at`: all are there. */
static int take_head(const struct evalfile *f, size_t *ret_words, struct err *err)
{
    const uint16_t *w = f->word + f->at;
    const size_t left = f->words - f->at;

    if (left < HEAD_WORDS)
        return wrong(f, "bytes left", 2 * left, "at least 10", err);
    if (w[0] != START)
        return wrong(f, "first word", w[0], "65535", err);
    if (w[1] % 2 || w[1] < 2 * HEAD_WORDS || w[1] / 2U > left)
        return wrong(f, "bytes", w[1], "an even number, and as many in the file", err);
    if (w[2] != f->next)
        return wrong(f, "number", w[2], "its place in the file", err);
    if (w[4] < 2 || w[4] > CHOICE_ENDINGS_MAX)
        return wrong(f, "endings", w[4], "2..16", err);
    if (w[3] >= w[4])
        return wrong(f, "right ending", w[3], "one of its endings", err);
    *ret_words = w[1] / 2U;
    return 0;
}

/* A number of tokens and the tokens, at *at of a question of `end` words. */
static int take_tokens(const struct evalfile *f, size_t *at, size_t end, const char *what,
                       struct choice_tokens *ret, struct err *err)
{
    const uint16_t *w = f->word + f->at;

    if (*at == end || !w[*at] || w[*at] > end - *at - 1)
        return wrong(f, what, *at == end ? 0 : w[*at],
                     "at least one token, and all of them in the question's bytes", err);
    *ret = (struct choice_tokens){w + *at + 1, w[*at]};
    *at += 1 + (size_t)w[*at];
    return 0;
}

int evalfile_next(struct evalfile *f, struct choice_question *q, bool *ret_more, struct err *err)
{
    size_t end, at = HEAD_WORDS;

    *ret_more = f->next < f->count;
    if (!*ret_more && f->at < f->words)
        return err_set(err, ERR_INVALID, "%.160s: %zu bytes behind the last of %" PRId64 " questions",
                       f->path, 2 * (f->words - f->at), f->count);
    if (!*ret_more)
        return 0;
    if (take_head(f, &end, err))
        return -1;
    *q = (struct choice_question){.endings = f->word[f->at + 4], .answer = f->word[f->at + 3]};
    if (take_tokens(f, &at, end, "context", &q->context, err))
        return -1;
    for (int i = 0; i < q->endings; i++)
        if (take_tokens(f, &at, end, "ending", &q->ending[i], err))
            return -1;
    if (at != end)
        return wrong(f, "bytes", 2 * end, "those of its tokens", err);
    f->at += end;
    f->next++;
    return 0;
}
