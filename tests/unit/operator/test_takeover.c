/* test_takeover.c - two operators and one Lease: wherever the leader dies, hangs or is told to stop, the other one
 * brings the job to the same end, and what the first had sent does no harm when it arrives late.
 *
 * usage: test_takeover [scenario [trouble]]
 */
#include "converge.h"
#include "test.h"

enum { ENOUGH = 3 };

static const struct trouble TROUBLES[] = {
    {"dies-before", .fault = {.fault = FAKE_HANG_BEFORE}, .follows = FOLLOWS_TAKEOVER},
    {"dies-after", .fault = {.fault = FAKE_HANG_AFTER}, .follows = FOLLOWS_TAKEOVER},
    {"arrives-late", .fault = {.fault = FAKE_HANG_BEFORE}, .follows = FOLLOWS_CUT_OFF, .ghosts = true},
    {"cut-off-after", .fault = {.fault = FAKE_HANG_AFTER}, .follows = FOLLOWS_CUT_OFF},
    {"told-to-stop", .fault = {.fault = FAKE_NOTHING}, .follows = FOLLOWS_HANDOVER},
};

static void sweep(void **state)
{
    struct converge_row *row = *state;
    struct trouble t = *row->trouble;

    t.operators = 2;
    t.fault.writes = true;
    converge_sweep(row, &t, &t.fault.request, 1, ENOUGH);
}

int main(int argc, char **argv)
{
    return CONVERGE_MAIN(argc, argv, TROUBLES, sweep);
}
