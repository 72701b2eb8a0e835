/* test_notices.c - whatever becomes of a single watch event, a job comes to the same end: the scenario is run again
 * with event 1, 2, 3 ... lost with its stream, told twice, late, merged with the next, or replaced by a 410.
 *
 * usage: test_notices [scenario [trouble]]
 */
#include "converge.h"
#include "test.h"

/* Late is longer than the controller waits for its cache to show what it wrote (jobmemory.c); very late is longer than any
 * wait of a plan for what others do. */
enum { ENOUGH = 5, LATE_MS = 7000, VERY_LATE_MS = 40000 };

static const struct trouble TROUBLES[] = {
    {"lost-with-stream", "F3", COUNTS_EVENTS, .tamper = {.how = FAKE_CUT_BEFORE}},
    {"stream-ends-after", .tamper = {.how = FAKE_CUT_AFTER}},
    {"told-twice", .tamper = {.how = FAKE_REPEAT}},
    {"late", .tamper = {.how = FAKE_LATE, .late_ms = LATE_MS}},
    {"very-late", .tamper = {.how = FAKE_LATE, .late_ms = VERY_LATE_MS}},
    {"merged", "F3", COUNTS_EVENTS, .tamper = {.how = FAKE_MERGE, .late_ms = LATE_MS}},
    {"gone-in-stream", "F3", COUNTS_EVENTS, .tamper = {.how = FAKE_GONE_STREAM}},
    {"gone-at-request", "F3", COUNTS_EVENTS, .tamper = {.how = FAKE_GONE_REQUEST}},
};

static void sweep(void **state)
{
    struct converge_row *row = *state;
    struct trouble t = *row->trouble;

    converge_sweep(row, &t, &t.tamper.event, 1, ENOUGH);
}

int main(int argc, char **argv)
{
    return CONVERGE_MAIN(argc, argv, TROUBLES, sweep);
}
