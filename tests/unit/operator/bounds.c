/* bounds.c - for each kind of trouble the time limits that are promised (kube/README.md). They stand here as numbers: a limit
 * that grew in the code would otherwise grow here too. */
#include "bounds.h"

enum {
    REQUEST_MS = 30000,     /* without an answer */
    DEAD_WATCH_MS = 150000, /* without a byte */
    TAKEOVER_MS = 17000,    /* a lease's duration, and the time between two looks at it */
    HANDOVER_MS = 2000,
    WAIT_MS = 1600, /* after a watch's first failure, with all of its jitter; doubling */
    WAIT_MAX_MS = 60000,
};

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

int64_t bounds_fault_ms(const struct fake_fault_plan *f, bool watch)
{
    switch (f->fault) {
    case FAKE_STATUS:
        return (int64_t)f->retry_after_s * 1000;
    case FAKE_HANG_BEFORE:
    case FAKE_HANG_AFTER:
    case FAKE_STALL_BODY:
    case FAKE_DRIP_BODY:
        return watch ? DEAD_WATCH_MS : REQUEST_MS;
    case FAKE_DROP_BEFORE:
    case FAKE_DROP_AFTER:
    case FAKE_RESET_BODY:
    case FAKE_GARBAGE_BODY:
    case FAKE_LATE_BODY:
    case FAKE_NOTHING:
        return 0;
    }
    return 0;
}

int64_t bounds_lasting_ms(const struct fake_fault_plan *f, bool watch, int64_t lasts_ms)
{
    return 2 * lasts_ms + bounds_fault_ms(f, watch);
}

int64_t bounds_follows_ms(enum follows follows)
{
    switch (follows) {
    case FOLLOWS_NOTHING:
    case FOLLOWS_CRASH:
        return 0;
    case FOLLOWS_TAKEOVER:
        return TAKEOVER_MS;
    case FOLLOWS_CUT_OFF:
        return BOUNDS_CUT_OFF_MS;
    case FOLLOWS_HANDOVER:
        return HANDOVER_MS;
    }
    return 0;
}

int64_t bounds_tamper_ms(const struct fake_tamper *t)
{
    int64_t sum = least(t->late_ms, DEAD_WATCH_MS);
    int64_t wait = WAIT_MS;

    for (int i = 0; i < t->repeats; i++) {
        sum += wait;
        wait = least(2 * wait, WAIT_MAX_MS);
    }
    return sum;
}
