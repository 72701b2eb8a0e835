/* span.h - a span of time as people read it in a table: "<1m", "5m", "3h12m", "2d4h". Pure. */
#ifndef TK_CLI_WATCH_SPAN_H
#define TK_CLI_WATCH_SPAN_H

#include <stdint.h>

enum { SPAN_BYTES = 24 };

/* Whole minutes, so that a table does not change every second. Negative counts as 0. */
const char *span_text(int64_t seconds, char buf[static SPAN_BYTES]);

#endif
