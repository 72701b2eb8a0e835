/* clock.c - system clocks, RFC 3339 without time zones or locale, and local time. */
#include "common/clock.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static int64_t read_ms(clockid_t id)
{
    struct timespec ts;

    clock_gettime(id, &ts);
    return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

static int64_t system_wall_ms(void *ctx)
{
    (void)ctx;
    return read_ms(CLOCK_REALTIME);
}

int64_t clock_mono_ms(void)
{
    return read_ms(CLOCK_MONOTONIC);
}

static int64_t system_mono_ms(void *ctx)
{
    (void)ctx;
    return clock_mono_ms();
}

static int64_t system_boot_ms(void *ctx)
{
    (void)ctx;
    return read_ms(CLOCK_BOOTTIME);
}

static int64_t system_cpu_us(void *ctx)
{
    struct timespec ts;

    (void)ctx;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
    return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

struct clock clock_system(void)
{
    return (struct clock){system_wall_ms, system_mono_ms, system_boot_ms, system_cpu_us, NULL};
}

void clock_rfc3339(int64_t wall_ms, bool millis, char out[static CLOCK_RFC3339_BYTES])
{
    const int ms = (int)((wall_ms % 1000 + 1000) % 1000);
    const time_t s = (wall_ms - ms) / 1000;
    struct tm tm;

    gmtime_r(&s, &tm);
    int len =
        snprintf(out, CLOCK_RFC3339_BYTES, "%04d-%02d-%02dT%02d:%02d:%02d", (tm.tm_year + 1900) % 10000,
                 (tm.tm_mon + 1) % 100, tm.tm_mday % 100, tm.tm_hour % 100, tm.tm_min % 100, tm.tm_sec % 100);
    if (millis)
        snprintf(out + len, CLOCK_RFC3339_BYTES - (size_t)len, ".%03dZ", ms % 1000);
    else
        snprintf(out + len, CLOCK_RFC3339_BYTES - (size_t)len, "Z");
}

void clock_local(int64_t wall_ms, char out[static CLOCK_RFC3339_BYTES])
{
    const time_t s = (time_t)(wall_ms / 1000);
    struct tm tm;

    if (!localtime_r(&s, &tm) || !strftime(out, CLOCK_RFC3339_BYTES, "%Y-%m-%d_%H:%M:%S", &tm))
        snprintf(out, CLOCK_RFC3339_BYTES, "unknown");
}

/* Read `n` digits at *p, a number in min..max; move *p behind them. */
static bool digits(const char **p, int n, int min, int max, int *ret)
{
    int v = 0;

    for (int i = 0; i < n; i++, (*p)++) {
        if (!isdigit((unsigned char)**p))
            return false;
        v = v * 10 + (**p - '0');
    }
    *ret = v;
    return v >= min && v <= max;
}

static bool literal(const char **p, char c)
{
    return *(*p)++ == c;
}

static bool parse_offset(const char *p, int *ret_minutes)
{
    int h = 0;
    int m = 0;

    if ((*p == 'Z' || *p == 'z') && !p[1]) {
        *ret_minutes = 0;
        return true;
    }
    if (*p != '+' && *p != '-')
        return false;
    int sign = *p++ == '-' ? -1 : 1;
    if (!digits(&p, 2, 0, 23, &h) || !literal(&p, ':') || !digits(&p, 2, 0, 59, &m) || *p)
        return false;
    *ret_minutes = sign * (h * 60 + m);
    return true;
}

bool clock_parse_rfc3339(const char *text, int64_t *ret_wall_ms)
{
    const char *p = text;
    int y = 0, mo = 0, d = 0, h = 0, mi = 0, s = 0, offset = 0, ms = 0;

    if (!digits(&p, 4, 1, 9999, &y) || !literal(&p, '-') || !digits(&p, 2, 1, 12, &mo) || !literal(&p, '-') ||
        !digits(&p, 2, 1, 31, &d) || !(*p == 'T' || *p == 't'))
        return false;
    p++;
    if (!digits(&p, 2, 0, 23, &h) || !literal(&p, ':') || !digits(&p, 2, 0, 59, &mi) || !literal(&p, ':') ||
        !digits(&p, 2, 0, 60, &s))
        return false;
    if (*p == '.') {
        p++;
        int scale = 100;
        if (!isdigit((unsigned char)*p))
            return false;
        for (; isdigit((unsigned char)*p); p++, scale /= 10)
            ms += (*p - '0') * scale;
    }
    if (!parse_offset(p, &offset))
        return false;
    struct tm tm = {
        .tm_year = y - 1900, .tm_mon = mo - 1, .tm_mday = d, .tm_hour = h, .tm_min = mi, .tm_sec = s};
    *ret_wall_ms = ((int64_t)timegm(&tm) - offset * 60) * 1000 + ms;
    return true;
}
