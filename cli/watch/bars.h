/* bars.h - progress bars and sparklines as text. Pure.
 *
 * Errors:    none: the buffers are long enough for what their widths allow.
 */
#ifndef TK_CLI_WATCH_BARS_H
#define TK_CLI_WATCH_BARS_H

#include <stdbool.h>
#include <stdint.h>

enum { BARS_WIDTH_MAX = 64, BARS_BYTES = 3 * BARS_WIDTH_MAX + 1 };

/* A bar of `width` columns for 0..100 per cent; eighths of a column where `unicode`. */
const char *bars_progress(int64_t percent, int width, bool unicode, char buf[static BARS_BYTES]);

/* The last `width` of n values, one column each, scaled between the smallest and the largest of them; values that are
 * not finite are a blank. */
const char *bars_spark(const double *values, int n, int width, bool unicode, char buf[static BARS_BYTES]);

#endif
