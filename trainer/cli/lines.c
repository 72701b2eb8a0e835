/* lines.c - replace {words} in the lines that a preset prints. */
#include "trainer/cli/lines.h"

#include "common/buf.h"

#include <limits.h>
#include <stddef.h>
#include <string.h>

enum kind { WORD_INTEGER, WORD_TEXT, WORD_LOSS };

static const struct word {
    const char *name;
    enum kind kind;
    size_t offset;
} WORDS[] = {
    {"rank", WORD_INTEGER, offsetof(struct lines_values, rank)},
    {"world", WORD_INTEGER, offsetof(struct lines_values, world)},
    {"epoch", WORD_INTEGER, offsetof(struct lines_values, epoch)},
    {"epochs", WORD_INTEGER, offsetof(struct lines_values, epochs)},
    {"batch_size", WORD_INTEGER, offsetof(struct lines_values, batch_size)},
    {"steps", WORD_INTEGER, offsetof(struct lines_values, steps)},
    {"save_every", WORD_INTEGER, offsetof(struct lines_values, save_every)},
    {"save_path", WORD_TEXT, offsetof(struct lines_values, save_path)},
    {"loss", WORD_LOSS, offsetof(struct lines_values, loss)},
};

static const struct word *find(const char *name, size_t len)
{
    for (size_t i = 0; i < ARRAY_LEN(WORDS); i++)
        if (strlen(WORDS[i].name) == len && memcmp(WORDS[i].name, name, len) == 0)
            return &WORDS[i];
    return NULL;
}

static int unknown(const char *name, size_t len, struct err *err)
{
    char known[160] = "";
    size_t used = 0;

    for (size_t i = 0; i < ARRAY_LEN(WORDS) && used < sizeof(known); i++)
        used += (size_t)snprintf(known + used, sizeof(known) - used, "%s{%s}", i ? ", " : "", WORDS[i].name);
    return err_set(err, ERR_INVALID, "\"{%.*s}\": expected one of %s", len < 40 ? (int)len : 40, name, known);
}

int lines_check(const char *text, struct err *err)
{
    for (const char *at = text; *at; at++) {
        if (*at == '}')
            return err_set(err, ERR_INVALID, "a '}' without a '{'");
        if (*at != '{')
            continue;
        size_t len = strcspn(at + 1, "{}");
        if (at[1 + len] != '}')
            return err_set(err, ERR_INVALID, "a '{' without a '}'");
        if (!find(at + 1, len))
            return unknown(at + 1, len, err);
        at += 1 + len;
    }
    return 0;
}

static int put(struct buf *b, const struct word *w, const struct lines_values *v, struct err *err)
{
    const void *field = (const char *)v + w->offset;

    switch (w->kind) {
    case WORD_INTEGER:
        return buf_printf(b, err, "%lld", (long long)*(const int64_t *)field);
    case WORD_TEXT:
        return buf_printf(b, err, "%s", *(const char *const *)field ? *(const char *const *)field : "");
    case WORD_LOSS:
        return buf_printf(b, err, "%.3f", *(const double *)field);
    }
    return 0;
}

void lines_print(FILE *out, const char *text, const struct lines_values *v)
{
    cleanup_buf struct buf b = BUF_INIT(LINES_TEXT_MAX + 4 * PATH_MAX);
    struct err full;
    int rc = 0;

    while (*text && !rc) {
        size_t plain = strcspn(text, "{");
        rc = buf_printf(&b, &full, "%.*s", (int)plain, text);
        text += plain;
        if (!*text || rc)
            break;
        size_t len = strcspn(text + 1, "}");
        const struct word *w = find(text + 1, len);
        rc = w ? put(&b, w, v, &full) : 0;
        text += 1 + len + (text[1 + len] == '}');
    }
    fprintf(out, "%s\n", buf_str(&b));
    fflush(out);
}
