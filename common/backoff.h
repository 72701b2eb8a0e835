/* backoff.h - the delay of an exponential back-off. Pure. */
#ifndef TK_COMMON_BACKOFF_H
#define TK_COMMON_BACKOFF_H

#include <stdint.h>

/* first_ms after the first failure, twice as long after each further one, max_ms at most; `earlier` failures came before. */
static inline int64_t backoff_delay_ms(int64_t first_ms, int64_t max_ms, int earlier)
{
    int64_t delay = first_ms;

    for (int i = 0; i < earlier && delay < max_ms; i++)
        delay *= 2;
    return delay < max_ms ? delay : max_ms;
}

#endif
