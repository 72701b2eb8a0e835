/* log.c - write JSON log lines. */
#include "common/log.h"

#include "common/json.h"
#include "common/text.h"

#include <stdio.h>
#include <unistd.h>

const char *const log_level_names[] = {"debug", "info", "warn", "error", NULL};

/* The bytes that JSON needs for this one. */
static size_t cost(char c)
{
    return (unsigned char)c < 0x20 ? 6 : c == '"' || c == '\\' ? 2 : 1;
}

/* Append the pair, its value as UTF-8 and cut to what fits; nothing if not even an empty value fits. False: not all of it. */
static bool put_pair(struct buf *line, const char *key, const char *value)
{
    const size_t before = line->len;
    char part[LOG_LINE_BYTES];
    size_t n = 0, used = strlen("\"\"");
    struct err full;

    if (buf_puts(line, before ? "," : "{", &full) == 0 && json_write_string(key, line, &full) == 0 &&
        buf_puts(line, ":", &full) == 0) {
        for (; value[n] && used + cost(value[n]) <= line->max - line->len; n++)
            used += cost(value[n]);
        snprintf(part, sizeof(part), "%.*s", (int)text_head(value, n), value);
        text_repair(part);
        if (json_write_string(part, line, &full) == 0)
            return !value[n];
    }
    line->len = before;
    return false;
}

void log_line(const struct log *log, enum log_level level, const char *msg, const char *const *fields)
{
    static const char CUT[] = ",\"truncated\":true";
    cleanup_buf struct buf line = BUF_INIT(LOG_LINE_BYTES - sizeof(CUT) - 1);
    char ts[CLOCK_RFC3339_BYTES];

    if (level < log->level)
        return;
    clock_rfc3339(log->clock.wall_ms(log->clock.ctx), true, ts);
    put_pair(&line, "ts", ts);
    put_pair(&line, "level", log_level_names[level]);
    bool whole = put_pair(&line, "msg", msg); /* before the fields, so that they do not take its room */
    for (; fields && fields[0]; fields += 2)
        if (fields[1])
            whole &= put_pair(&line, fields[0], fields[1]);
    line.max = LOG_LINE_BYTES;
    buf_printf(&line, NULL, "%s}\n", whole ? "" : CUT);
    ssize_t ignored = write(log->fd, line.data, line.len); /* a failed write cannot be reported */
    (void)ignored;
}
