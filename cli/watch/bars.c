/* bars.c - draw progress bars and sparklines in text. */
#include "cli/watch/bars.h"

#include "common/text.h"

#include <math.h>

enum { EIGHTHS = 8, LEVELS = 8 };

const char *bars_progress(int64_t percent, int width, bool unicode, char buf[static BARS_BYTES])
{
    static const char *const PARTS[EIGHTHS] = {" ",
                                               "\xe2\x96\x8f",
                                               "\xe2\x96\x8e",
                                               "\xe2\x96\x8d",
                                               "\xe2\x96\x8c",
                                               "\xe2\x96\x8b",
                                               "\xe2\x96\x8a",
                                               "\xe2\x96\x89"};
    const int w = width < 0 ? 0 : width > BARS_WIDTH_MAX ? BARS_WIDTH_MAX : width;
    const int64_t p = percent < 0 ? 0 : percent > 100 ? 100 : percent;
    const int64_t filled = p * w * EIGHTHS / 100;

    buf[0] = '\0';
    for (int i = 0; i < w; i++) {
        const int64_t part = filled - (int64_t)i * EIGHTHS;
        const char *full = unicode ? "\xe2\x96\x88" : "#", *empty = unicode ? "\xc2\xb7" : ".";
        text_add(buf, BARS_BYTES, "%s", part >= EIGHTHS ? full : unicode && part > 0 ? PARTS[part] : empty);
    }
    return buf;
}

const char *bars_spark(const double *values, int n, int width, bool unicode, char buf[static BARS_BYTES])
{
    static const char *const BLOCKS[LEVELS] = {"\xe2\x96\x81", "\xe2\x96\x82", "\xe2\x96\x83",
                                               "\xe2\x96\x84", "\xe2\x96\x85", "\xe2\x96\x86",
                                               "\xe2\x96\x87", "\xe2\x96\x88"};
    static const char *const ASCII[LEVELS] = {"_", ".", ":", "-", "=", "+", "*", "#"};
    const int w = width < 0 ? 0 : width > BARS_WIDTH_MAX ? BARS_WIDTH_MAX : width;
    const int first = n > w ? n - w : 0;
    double low = INFINITY, high = -INFINITY;

    buf[0] = '\0';
    for (int i = first; i < n; i++)
        if (isfinite(values[i])) {
            low = fmin(low, values[i]);
            high = fmax(high, values[i]);
        }
    for (int i = first; i < n; i++) {
        /* Halves first: the difference of two numbers of 1e308 is no number. */
        const double range = high / 2 - low / 2;
        const double share = range > 0 ? (values[i] / 2 - low / 2) / range : 0.5;
        const int level = isfinite(values[i]) ? (int)(share * (LEVELS - 1) + 0.5) : -1;
        text_add(buf, BARS_BYTES, "%s", level < 0 ? " " : unicode ? BLOCKS[level] : ASCII[level]);
    }
    return buf;
}
