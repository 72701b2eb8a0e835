/* log.c - write JSON log lines. */
#include "common/log.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

const char *const log_level_names[] = {"debug", "info", "warn", "error", NULL};

struct line {
    char text[LOG_LINE_BYTES];
    size_t len;
    bool truncated;
};

/* Room for the closing `,"truncated":true}` and the newline. */
enum { LINE_TAIL_BYTES = 24 };

static void put(struct line *l, const char *bytes, size_t len)
{
    if (len > sizeof(l->text) - LINE_TAIL_BYTES - l->len) {
        l->truncated = true;
        return;
    }
    memcpy(l->text + l->len, bytes, len);
    l->len += len;
}

static void put_string(struct line *l, const char *s)
{
    /* The closing quote always fits: LINE_TAIL_BYTES are reserved. */
    put(l, "\"", 1);
    for (; *s && l->len + 8 < sizeof(l->text) - LINE_TAIL_BYTES; s++) {
        unsigned char c = (unsigned char)*s;
        char esc[8];
        if (c == '"' || c == '\\')
            put(l, (char[]){'\\', (char)c}, 2);
        else if (c == '\n')
            put(l, "\\n", 2);
        else if (c < 0x20)
            put(l, esc, (size_t)snprintf(esc, sizeof(esc), "\\u%04x", c));
        else
            put(l, s, 1);
    }
    if (*s)
        l->truncated = true;
    put(l, "\"", 1);
}

/* Append the pair, or nothing of it if it does not fit. */
static void put_pair(struct line *l, const char *key, const char *value)
{
    size_t keep = l->len;

    put(l, ",", 1);
    put_string(l, key);
    put(l, ":", 1);
    size_t value_at = l->len;
    put_string(l, value);
    if (l->len < value_at + 2 || l->text[l->len - 1] != '"')
        l->len = keep;
}

void log_line(const struct log *log, enum log_level level, const char *msg, const char *const *fields)
{
    struct line l = {.len = 0};
    char ts[CLOCK_RFC3339_BYTES];

    if (level < log->level)
        return;
    clock_rfc3339(log->clock.wall_ms(log->clock.ctx), true, ts);
    put(&l, "{\"ts\":", 6);
    put_string(&l, ts);
    put_pair(&l, "level", log_level_names[level]);
    put_pair(&l, "msg", msg); /* before the fields, so that it is not cut because of them */
    for (; fields && fields[0]; fields += 2)
        if (fields[1])
            put_pair(&l, fields[0], fields[1]);
    l.len += (size_t)snprintf(l.text + l.len, sizeof(l.text) - l.len, "%s}\n",
                              l.truncated ? ",\"truncated\":true" : "");
    ssize_t ignored = write(log->fd, l.text, l.len); /* a failed write cannot be reported */
    (void)ignored;
}
