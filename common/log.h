/* log.h - one JSON object per line on a file descriptor. For programs, never for libraries.
 *
 * Order:  one write(2) per line, so lines of several processes do not mix; a line over LOG_LINE_BYTES is cut
 * in its message and says "truncated":true.
 */
#ifndef TK_COMMON_LOG_H
#define TK_COMMON_LOG_H

#include "common/clock.h"

enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARN, LOG_ERROR };

enum { LOG_LINE_BYTES = 4096 };

struct log {
    int fd;
    enum log_level level; /* lines below it are dropped */
    struct clock clock;
};

/* Extra string fields: alternating key, value pairs ended by NULL; a NULL value leaves its pair out. Keys are
 * ours and need no escaping. Example: log_line(&log, LOG_INFO, "restarting", (const char *[]){"job", name,
 * "uid", uid, NULL}) */
void log_line(const struct log *log, enum log_level level, const char *msg, const char *const *fields);

/* False when `name` is none of debug, info, warn, error. */
bool log_level_parse(const char *name, enum log_level *ret);

#endif
