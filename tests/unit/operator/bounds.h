/* bounds.h - how much later than without trouble a job may come to its end, by what the code promises. Pure.
 *
 * Units: milliseconds of the lab's clock; what several troubles cost adds up.
 */
#ifndef TK_TESTS_OPERATOR_BOUNDS_H
#define TK_TESTS_OPERATOR_BOUNDS_H

#include "converge.h"

enum {
    BOUNDS_CUT_OFF_MS = 25000, /* how long the leader receives and sends nothing */
    BOUNDS_FROZEN_MS = 60000,  /* how long a server shows an old state */
    /* On top of the rest, in each run: the waits for two failures of a watch in a row (1.6 and 3.2 s), the wait for the
     * cache to show a write (5 s, jobmemory.c), and ten steps of the story that come up to a second later each. */
    BOUNDS_SLACK_MS = 20000,
};

/* A request that was struck once: for as long as the server asked, or until nobody waits for an answer any more. */
int64_t bounds_fault_ms(const struct fake_fault_plan *f, bool watch);

/* All requests that fit are struck for so long. A back-off that doubles is over as long again after the end of it. */
int64_t bounds_lasting_ms(const struct fake_fault_plan *f, bool watch, int64_t lasts_ms);

int64_t bounds_follows_ms(enum follows follows);

/* A watch event that was struck: as long as it is kept back, or until the silence is noticed; and the waits of a watch that
 * fails several times in a row. */
int64_t bounds_tamper_ms(const struct fake_tamper *t);

#endif
