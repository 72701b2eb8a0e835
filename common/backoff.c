/* backoff.c - exponential back-off with jitter. */
#include "common/backoff.h"

#include "common/random.h"

bool backoff_is_first(const struct backoff *b, int64_t now_ms)
{
    return b->failures == 0 || now_ms - b->failed_ms >= BACKOFF_QUIET_MS;
}

int64_t backoff_failed(struct backoff *b, int64_t now_ms, int64_t at_least_ms)
{
    if (backoff_is_first(b, now_ms))
        b->failures = 0;
    int64_t delay = backoff_delay_ms(BACKOFF_MIN_MS, BACKOFF_MAX_MS, b->failures);
    delay += (int64_t)(random_next(&b->random) % (uint64_t)delay);
    b->failures++;
    b->failed_ms = now_ms;
    return delay > at_least_ms ? delay : at_least_ms;
}
