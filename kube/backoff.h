/* backoff.h - delay before the next try after a failure: exponential with jitter, reset after two minutes
 * without a failure. Pure.
 *
 * The constants are those of client-go's reflector (tools/cache/reflector.go): against a server that stays
 * down the delay is 30 to 60 s, 45 s on average.
 * Units:     milliseconds of one monotonic clock.
 */
#ifndef TK_KUBE_BACKOFF_H
#define TK_KUBE_BACKOFF_H

#include <stdbool.h>
#include <stdint.h>

enum {
    BACKOFF_MIN_MS = 800,
    BACKOFF_MAX_MS = 30000,    /* before jitter, which adds less than as much again */
    BACKOFF_QUIET_MS = 120000, /* after so long without a failure it starts over */
};

struct backoff {
    uint64_t random; /* state of the jitter (common/random.h); any seed */
    int failures;    /* in a row, since the last quiet time */
    int64_t failed_ms;
};

/* Whether a failure now would be the first since the last quiet time. */
bool backoff_is_first(const struct backoff *b, int64_t now_ms);

/* Count a failure. Returns how long to wait before the next try, at least at_least_ms. */
int64_t backoff_failed(struct backoff *b, int64_t now_ms, int64_t at_least_ms);

#endif
