/* quiet.h - measure how long this node's ranks have shown no sign of life. No system calls.
 *
 * A time in which the launcher itself stood still (a frozen container, a stopped launcher) does not count: its ranks most
 * likely stood still too, and what they did meanwhile has not been seen.
 *
 * Order: quiet_begin when the ranks have been started; then quiet_sign for each sign, and quiet_look at quiet_due_ms at the
 *        latest.
 * Units: milliseconds of the caller's monotonic clock.
 */
#ifndef TK_LAUNCHER_QUIET_H
#define TK_LAUNCHER_QUIET_H

#include <stdbool.h>
#include <stdint.h>

/* QUIET_LOOK_MS: the longest time between two looks. QUIET_LATE_MS: a look that comes later than this was held up. */
enum { QUIET_LOOK_MS = 1000, QUIET_LATE_MS = 3000 };

struct quiet {
    int64_t limit_ms;
    int64_t sign_ms;   /* the last sign */
    int64_t looked_ms; /* the last look */
};

void quiet_begin(struct quiet *q, int64_t limit_ms, int64_t now_ms);

/* There was a sign at `at_ms`; an older one than the last changes nothing. */
void quiet_sign(struct quiet *q, int64_t at_ms);

/* Whether there has been no sign for the limit. */
bool quiet_look(struct quiet *q, int64_t now_ms);

/* When to look again at the latest. */
int64_t quiet_due_ms(const struct quiet *q);

#endif
