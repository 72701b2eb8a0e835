/* log.h - write log lines: one JSON object per line on a file descriptor. For programs, not for libraries.
 *
 * Order:     one write(2) per line, so that lines of several processes do not mix. log_line cuts the value that would
 *            make a line longer than LOG_LINE_BYTES, leaves out what follows it, and adds "truncated":true.
 */
#ifndef TK_COMMON_LOG_H
#define TK_COMMON_LOG_H

#include "common/clock.h"

enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARN, LOG_ERROR };

/* "debug", "info", ...: the name of each, ended by NULL. */
extern const char *const log_level_names[];

enum { LOG_LINE_BYTES = 4096 };

struct log {
    int fd;
    enum log_level level; /* lines below it are dropped */
    struct clock clock;
};

/* fields: alternating key and value of extra string members, ended by NULL; a pair with value NULL is left
 * out. Example: log_line(&log, LOG_INFO, "restarting", (const char *[]){"job", name, "uid", uid, NULL}) */
void log_line(const struct log *log, enum log_level level, const char *msg, const char *const *fields);

#endif
