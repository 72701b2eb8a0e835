/* span.c - write and read spans of time. */
#include "cli/span.h"
#include "cli/usage.h"

#include <ctype.h>
#include <stdio.h>

const char *span_text(int64_t seconds, bool exact, char buf[static SPAN_BYTES])
{
    const long long m = seconds < 0 ? 0 : seconds / 60, h = m / 60, d = h / 24;

    if (m < 1 && exact)
        snprintf(buf, SPAN_BYTES, "%llds", seconds > 0 ? (long long)seconds : 0);
    else if (m < 1)
        snprintf(buf, SPAN_BYTES, "<1m");
    else if (h < 1)
        snprintf(buf, SPAN_BYTES, "%lldm", m);
    else if (d < 1 && m % 60)
        snprintf(buf, SPAN_BYTES, "%lldh%lldm", h, m % 60);
    else if (d < 1)
        snprintf(buf, SPAN_BYTES, "%lldh", h);
    else if (d < 100 && h % 24)
        snprintf(buf, SPAN_BYTES, "%lldd%lldh", d, h % 24);
    else
        snprintf(buf, SPAN_BYTES, "%lldd", d);
    return buf;
}

static int64_t unit_of(char c)
{
    return c == 'd' ? 86400 : c == 'h' ? 3600 : c == 'm' ? 60 : c == 's' ? 1 : 0;
}

int span_parse(const char *option, const char *text, int64_t *ret_s, struct err *err)
{
    int64_t sum = 0, last = INT64_MAX;
    const char *at = text;

    do {
        int64_t n = 0, unit;
        if (!isdigit((unsigned char)*at))
            break;
        while (isdigit((unsigned char)*at) && n <= SPAN_MAX_S)
            n = n * 10 + (*at++ - '0');
        unit = *at ? unit_of(*at++) : at > text && last == INT64_MAX ? 1 : 0;
        if (!unit || unit >= last || n > SPAN_MAX_S / unit || (sum += n * unit) > SPAN_MAX_S)
            break;
        last = unit;
        if (!*at) {
            *ret_s = sum;
            return 0;
        }
    } while (*at);
    return usage_wrong(err, "--%s: expected a time such as 90s, 5m or 1h30m, got \"%.40s\"", option, text);
}
