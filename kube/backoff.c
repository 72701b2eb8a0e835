/* backoff.c - exponential back-off with jitter. */
#include "kube/backoff.h"

#include "common/backoff.h"

/* splitmix64 */
uint64_t backoff_random(struct backoff *b)
{
    uint64_t z = (b->random += 0x9e3779b97f4a7c15ULL);

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
}

bool backoff_is_first(const struct backoff *b, int64_t now_ms)
{
    return b->failures == 0 || now_ms - b->failed_ms >= BACKOFF_QUIET_MS;
}

int64_t backoff_failed(struct backoff *b, int64_t now_ms, int64_t at_least_ms)
{
    if (backoff_is_first(b, now_ms))
        b->failures = 0;
    int64_t delay = backoff_delay_ms(BACKOFF_MIN_MS, BACKOFF_MAX_MS, b->failures);
    delay += (int64_t)(backoff_random(b) % (uint64_t)delay);
    b->failures++;
    b->failed_ms = now_ms;
    return delay > at_least_ms ? delay : at_least_ms;
}
