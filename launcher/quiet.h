/* quiet.h - measure how long this node's ranks have made no progress (no "sign": output, a change in a slot
 * or in the progress file). agent_hang.c calls it. No system calls.
 *
 * Time in which the launcher itself was stopped (a frozen container, SIGSTOP) does not count: its ranks were
 * probably stopped too, and it did not see their progress.
 *
 * Order: call quiet_begin when the ranks have started, quiet_sign for each sign, and quiet_look at
 *        quiet_due_ms at the latest.
 * Units: milliseconds of the caller's monotonic clock.
 */
#ifndef TK_LAUNCHER_QUIET_H
#define TK_LAUNCHER_QUIET_H

#include <stdbool.h>
#include <stdint.h>

/* QUIET_LOOK_MS: the longest time between two calls of quiet_look. QUIET_LATE_MS: a longer time means that
 * the launcher was stopped. */
enum { QUIET_LOOK_MS = 1000, QUIET_LATE_MS = 3000 };

struct quiet {
    int64_t limit_ms;
    int64_t sign_ms;   /* time of the last sign */
    int64_t looked_ms; /* time of the last quiet_look */
};

void quiet_begin(struct quiet *q, int64_t limit_ms, int64_t now_ms);

/* Record a sign at `at_ms`; one older than the last has no effect. */
void quiet_sign(struct quiet *q, int64_t at_ms);

/* Whether there has been no sign for limit_ms. */
bool quiet_look(struct quiet *q, int64_t now_ms);

/* When to call quiet_look at the latest. */
int64_t quiet_due_ms(const struct quiet *q);

#endif
