/* test_sockets.c - the sweep of test_converge once more over real HTTP, for what libcurl makes of a connection that
 * breaks, a body that ends early and an error with a body. Nothing hangs here: that would take real seconds.
 *
 * usage: test_sockets [scenario [trouble]]
 */
#include "converge.h"
#include "test.h"

enum { ENOUGH = 5 };

static const struct trouble TROUBLES[] = {
    {"unavailable", .fault = {.fault = FAKE_STATUS, .status = 503, .retry_after_s = 1}, .sockets = true},
    {"drop-before", .fault = {.fault = FAKE_DROP_BEFORE}, .sockets = true},
    {"drop-after", .fault = {.fault = FAKE_DROP_AFTER}, .sockets = true},
    {"reset-body", .fault = {.fault = FAKE_RESET_BODY}, .sockets = true},
    {"killed-answered", .crash_at = 1, .sockets = true},
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
