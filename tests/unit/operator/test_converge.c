/* test_converge.c - whatever single request fails, and wherever the operator dies, a job comes to the same
 * end with the same children: the scenario is run again with request 1, 2, 3 ... struck, until a run stays
 * untouched.
 *
 * usage: test_converge [scenario [trouble]]
 */
#include "converge.h"
#include "test.h"

enum { ENOUGH = 5 };

static const struct trouble TROUBLES[] = {
    {"conflict", .fault = {.fault = FAKE_STATUS, .status = 409}},
    {"too-many", .fault = {.fault = FAKE_STATUS, .status = 429, .retry_after_s = CONVERGE_RETRY_AFTER_S}},
    {"internal-error", .fault = {.fault = FAKE_STATUS, .status = 500}},
    {"unavailable", .fault = {.fault = FAKE_STATUS, .status = 503, .retry_after_s = CONVERGE_RETRY_AFTER_S}},
    {"drop-before", .fault = {.fault = FAKE_DROP_BEFORE}},
    {"drop-after", .fault = {.fault = FAKE_DROP_AFTER}},
    {"timeout-before", .fault = {.fault = FAKE_HANG_BEFORE}},
    {"timeout-after", .fault = {.fault = FAKE_HANG_AFTER}},
    {"reset-body", .fault = {.fault = FAKE_RESET_BODY}},
    {"garbage-body", .fault = {.fault = FAKE_GARBAGE_BODY}},
    {"killed-before", "F1", COUNTS_WRITES, .fault = {.fault = FAKE_HANG_BEFORE}, .follows = FOLLOWS_CRASH},
    {"killed-after", "F1", COUNTS_WRITES, .fault = {.fault = FAKE_HANG_AFTER}, .follows = FOLLOWS_CRASH},
    {"killed-answered", "F1", COUNTS_WRITES, .crash_at = 1},
};

static void sweep(void **state)
{
    struct converge_row *row = *state;
    struct trouble t = *row->trouble;

    converge_sweep(row, &t, t.crash_at ? &t.crash_at : &t.fault.request, 1, ENOUGH);
}

int main(int argc, char **argv)
{
    return CONVERGE_MAIN(argc, argv, TROUBLES, sweep);
}
