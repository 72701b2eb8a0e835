/* awake.h - the time that has passed while this process ran. Time in which it was stopped (SIGSTOP, a frozen container)
 * is not part of it, so deadlines of other nodes do not expire meanwhile. meet.c gives it to node.h and leader.h. Pure.
 *
 * Units: milliseconds of the monotonic clock. */
#ifndef TK_RENDEZVOUS_AWAKE_H
#define TK_RENDEZVOUS_AWAKE_H

#include <stdint.h>

/* A process that acts later than planned by more than this was stopped. This much counts as time: under load each wait
 * may end late, and deadlines must come all the same. */
enum { AWAKE_LATE_MS = 100 };

struct awake {
    int64_t stopped_ms; /* time in which the process was stopped */
    int64_t due_ms;     /* when it planned to act next, in the time that awake_now returns; 0: not known */
};

static inline int64_t awake_now(struct awake *a, int64_t mono_ms)
{
    const int64_t now_ms = mono_ms - a->stopped_ms, last_ms = a->due_ms + AWAKE_LATE_MS;

    if (!a->due_ms || now_ms <= last_ms)
        return now_ms;
    a->stopped_ms += now_ms - last_ms;
    return a->due_ms = last_ms;
}

#endif
