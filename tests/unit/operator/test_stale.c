/* test_stale.c - an API server that fell behind: after a restart of the operator, or when its watches begin anew, the watch of
 * one kind says nothing newer than some changes ago, for a minute. Nothing is made twice, nothing that lives is deleted. One
 * thing is asked of the API server: that no list is old (it promises that, kube/watcher.h).
 *
 * usage: test_stale [scenario [trouble]]
 */
#include "converge.h"
#include "faults.h"
#include "test.h"

enum { ENOUGH = 5, EVERYTHING = 1000 };

#define STALE(kind) .class = "F2", .counting = COUNTS_ONCE, .crash_at = 1, .stale_kind = kind

static const struct trouble TROUBLES[] = {
    {"jobs-after-a-restart", STALE(TRAINJOB_PLURAL)},
    {"pods-after-a-restart", STALE("pods")},
    {"services-after-a-restart", STALE("services")},
    {"deployments-after-a-restart", STALE("deployments")},
    {"lease-after-a-death", STALE("leases"), .operators = 2},
    {"jobs-after-a-reconnect", STALE(TRAINJOB_PLURAL), .stale_reconnect = true},
    {"pods-after-a-reconnect", STALE("pods"), .stale_reconnect = true},
    {"services-after-a-reconnect", STALE("services"), .stale_reconnect = true},
    {"deployments-after-a-reconnect", STALE("deployments"), .stale_reconnect = true},
    {"lease-for-both", STALE("leases"), .operators = 2, .stale_reconnect = true},
};

/* How far behind: the last change, the last three, all. */
static const int LAGS[] = {1, 3, EVERYTHING};

static void sweep(void **state)
{
    struct converge_row *row = *state;
    /* In short, each third request, and half way between the others. */
    size_t first = faults_in_full() ? 0 : 1;
    size_t end = faults_in_full() ? ARRAY_LEN(LAGS) : 2;

    for (size_t i = first; i < end; i++) {
        struct trouble t = *row->trouble;
        t.stale_by = LAGS[i];
        t.ghosts = converge_may_leave_ghosts(row->scenario);
        converge_sweep(row, &t, &t.crash_at, faults_in_full() ? 1 : 3, ENOUGH);
    }
}

int main(int argc, char **argv)
{
    return CONVERGE_MAIN(argc, argv, TROUBLES, sweep);
}
