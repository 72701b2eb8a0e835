/* backoff.h - how long to wait after failures: doubling, jittered, and from the start again after a quiet time. Pure.
 *
 * The figures are client-go's reflector's (tools/cache/reflector.go): a dead server is asked about every 45 s.
 * Units: milliseconds on one clock that does not go back.
 */
#ifndef TK_KUBE_BACKOFF_H
#define TK_KUBE_BACKOFF_H

#include <stdbool.h>
#include <stdint.h>

enum {
    BACKOFF_MIN_MS = 800,
    BACKOFF_MAX_MS = 30000,    /* before jitter, which adds up to as much again */
    BACKOFF_QUIET_MS = 120000, /* without a failure for so long, it starts over */
};

struct backoff {
    uint64_t random; /* the seed of the jitter; anything */
    int failures;    /* since the last quiet time */
    int64_t failed_ms;
};

/* Any number, from the same source as the jitter. */
uint64_t backoff_random(struct backoff *b);

/* Whether a failure now would be the first since the last quiet time. */
bool backoff_is_first(const struct backoff *b, int64_t now_ms);

/* One more failure: how long to wait, never shorter than at_least_ms. */
int64_t backoff_failed(struct backoff *b, int64_t now_ms, int64_t at_least_ms);

#endif
