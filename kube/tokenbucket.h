/* tokenbucket.h - limit a rate with bursts: the client's queries per second, and events per object. Pure.
 *
 * Units:     milliseconds of one monotonic clock.
 */
#ifndef TK_KUBE_TOKENBUCKET_H
#define TK_KUBE_TOKENBUCKET_H

#include <stdbool.h>
#include <stdint.h>

struct tokenbucket {
    double tokens; /* begins with the burst */
    int64_t at_ms; /* when tokens was last computed */
};

/* Take a token. `interval_ms` brings one; at most `burst` collect. False: there is none yet. */
static inline bool tokenbucket_take(struct tokenbucket *b, double interval_ms, double burst, int64_t now_ms)
{
    double tokens = b->tokens + (double)(now_ms - b->at_ms) / interval_ms;

    b->tokens = tokens < burst ? tokens : burst;
    b->at_ms = now_ms;
    if (b->tokens < 1)
        return false;
    b->tokens -= 1;
    return true;
}

#endif
