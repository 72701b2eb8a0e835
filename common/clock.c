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
    int len = snprintf(out, CLOCK_RFC3339_BYTES, "%04d-%02d-%02dT%02d:%02d:%02d", tm.tm_year + 1900,
                       tm.tm_mon + 1, tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec);
    if (millis)
        snprintf(out + len, CLOCK_RFC3339_BYTES - (size_t)len, ".%03dZ", ms);
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

/* Whether the text begins like `shape`, in which 0 stands for any digit and T for either case. */
static bool has_shape(const char *text, const char *shape)
{
    for (; *shape; text++, shape++)
        if (*shape == '0' ? !isdigit((unsigned char)*text) : toupper((unsigned char)*text) != *shape)
            return false;
    return true;
}

static bool parse_offset(const char *p, int *ret_minutes)
{
    int h = 0, m = 0;

    if (*p == 'Z' || *p == 'z') {
        *ret_minutes = 0;
        return !p[1];
    }
    if ((*p != '+' && *p != '-') || !has_shape(p + 1, "00:00") || p[6])
        return false;
    sscanf(p + 1, "%2d:%2d", &h, &m);
    *ret_minutes = (*p == '-' ? -1 : 1) * (h * 60 + m);
    return h <= 23 && m <= 59;
}

bool clock_parse_rfc3339(const char *text, int64_t *ret_wall_ms)
{
    static const char SHAPE[] = "0000-00-00T00:00:00";
    struct tm tm = {0};
    int offset = 0, ms = 0;

    if (!has_shape(text, SHAPE))
        return false;
    sscanf(text, "%4d-%2d-%2d%*c%2d:%2d:%2d", &tm.tm_year, &tm.tm_mon, &tm.tm_mday, &tm.tm_hour, &tm.tm_min,
           &tm.tm_sec);
    if (tm.tm_year < 1 || tm.tm_mon < 1 || tm.tm_mon > 12 || tm.tm_mday < 1 || tm.tm_mday > 31 ||
        tm.tm_hour > 23 || tm.tm_min > 59 || tm.tm_sec > 60)
        return false;
    const char *p = text + strlen(SHAPE);
    if (has_shape(p, ".0"))
        for (int scale = 100; isdigit((unsigned char)*++p); scale /= 10)
            ms += (*p - '0') * scale;
    if (!parse_offset(p, &offset))
        return false;
    tm.tm_year -= 1900;
    tm.tm_mon--;
    *ret_wall_ms = ((int64_t)timegm(&tm) - offset * 60) * 1000 + ms;
    return true;
}
