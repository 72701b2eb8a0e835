/* backoff.h - how long to wait before the next try: an exponential delay, optionally with jitter and a count
 * of failures. Pure.
 *
 * Units:     milliseconds; of a struct backoff, those of one monotonic clock.
 */
#ifndef TK_COMMON_BACKOFF_H
#define TK_COMMON_BACKOFF_H

#include "common/random.h"

#include <stdbool.h>
#include <stdint.h>

/* first_ms after the first failure, doubled for each of the `earlier` failures before it, max_ms at most. */
static inline int64_t backoff_delay_ms(int64_t first_ms, int64_t max_ms, int earlier)
{
    int64_t delay = first_ms;

    for (int i = 0; i < earlier && delay < max_ms; i++)
        delay *= 2;
    return delay < max_ms ? delay : max_ms;
}

/* The values of client-go's reflector (tools/cache/reflector.go). While a server stays down the delay is 30
 * to 60 s, 45 s on average. */
enum {
    BACKOFF_MIN_MS = 800,
    BACKOFF_MAX_MS = 30000,    /* before jitter, which adds less than 100 % */
    BACKOFF_QUIET_MS = 120000, /* after this long without a failure it starts over */
};

struct backoff {
    uint64_t random; /* state of the jitter (random.h); any seed */
    int failures;    /* in a row, since the last quiet time */
    int64_t failed_ms;
};

/* Whether a failure now would be the first since the last quiet time. */
static inline bool backoff_is_first(const struct backoff *b, int64_t now_ms)
{
    return b->failures == 0 || now_ms - b->failed_ms >= BACKOFF_QUIET_MS;
}

/* Count a failure. Returns how long to wait before the next try, at least at_least_ms. */
static inline int64_t backoff_failed(struct backoff *b, int64_t now_ms, int64_t at_least_ms)
{
    if (backoff_is_first(b, now_ms))
        b->failures = 0;
    int64_t delay = backoff_delay_ms(BACKOFF_MIN_MS, BACKOFF_MAX_MS, b->failures++);
    delay += (int64_t)(random_next(&b->random) % (uint64_t)delay);
    b->failed_ms = now_ms;
    return delay > at_least_ms ? delay : at_least_ms;
}

#endif
