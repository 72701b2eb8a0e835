/* backoff.c - exponential back-off with jitter. */
#include "kube/backoff.h"

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
    int64_t delay = BACKOFF_MIN_MS;

    if (backoff_is_first(b, now_ms))
        b->failures = 0;
    for (int i = 0; i < b->failures && delay < BACKOFF_MAX_MS; i++)
        delay *= 2;
    if (delay > BACKOFF_MAX_MS)
        delay = BACKOFF_MAX_MS;
    delay += (int64_t)(backoff_random(b) % (uint64_t)delay);
    b->failures++;
    b->failed_ms = now_ms;
    return delay > at_least_ms ? delay : at_least_ms;
}
