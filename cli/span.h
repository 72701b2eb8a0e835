/* span.h - spans of time: written as people read them in a table ("<1m", "5m", "3h12m", "2d4h"), and read from options. Pure. */
#ifndef TK_CLI_SPAN_H
#define TK_CLI_SPAN_H

#include "common/cleanup.h"
#include "common/err.h"

#include <stdint.h>

enum { SPAN_BYTES = 24, SPAN_MAX_S = 10 * 365 * 86400 };

/* Whole minutes, so that a table does not change every second, or with `exact` also the seconds of less than a minute. Negative
 * counts as 0. */
const char *span_text(int64_t seconds, bool exact, char buf[static SPAN_BYTES]);

/* "90", "90s", "5m", "1h30m", "2d" as seconds, 0..SPAN_MAX_S. ERR_INVALID names the option. */
int span_parse(const char *option, const char *text, int64_t *ret_s, struct err *err) MUST_CHECK;

#endif
