/* span.c - write spans of time for tables. */
#include "cli/watch/span.h"

#include <stdio.h>

const char *span_text(int64_t seconds, char buf[static SPAN_BYTES])
{
    const long long m = seconds < 0 ? 0 : seconds / 60, h = m / 60, d = h / 24;

    if (m < 1)
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
