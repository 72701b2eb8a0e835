/* test_pairs.c - two troubles in one run, drawn by chance: two requests that fail or see the operator die, or one of
 * them and one watch event that goes astray. The number of draws is fixed; a failure names the seed and the two.
 *
 * usage: test_pairs [scenario [trouble [seed]]]
 */
#include "converge.h"
#include "test.h"

#include <stdlib.h>

enum { DRAWS = 100, LATE_MS = 7000 };

static const struct trouble FAULTS[] = {
    {.fault = {.fault = FAKE_STATUS, .status = 409}},
    {.fault = {.fault = FAKE_STATUS, .status = 429, .retry_after_s = CONVERGE_RETRY_AFTER_S}},
    {.fault = {.fault = FAKE_STATUS, .status = 500}},
    {.fault = {.fault = FAKE_DROP_BEFORE}},
    {.fault = {.fault = FAKE_DROP_AFTER}},
    {.fault = {.fault = FAKE_HANG_BEFORE}},
    {.fault = {.fault = FAKE_HANG_AFTER}},
    {.fault = {.fault = FAKE_RESET_BODY}},
    {.fault = {.fault = FAKE_HANG_BEFORE}, .follows = FOLLOWS_CRASH},
    {.fault = {.fault = FAKE_HANG_AFTER}, .follows = FOLLOWS_CRASH},
};

static const enum fake_tampering TAMPERINGS[] = {
    FAKE_CUT_BEFORE, FAKE_CUT_AFTER, FAKE_REPEAT, FAKE_LATE, FAKE_MERGE, FAKE_GONE_STREAM,
};

/* xorshift64*: Vigna, "An experimental exploration of Marsaglia's xorshift generators, scrambled" (2016). */
static uint64_t draw(uint64_t *state, uint64_t below)
{
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return (*state * UINT64_C(2685821657736338717) >> 33) % below;
}

static void two_requests(struct trouble *t, uint64_t *state, const struct ending *untroubled)
{
    const struct trouble *first = &FAULTS[draw(state, ARRAY_LEN(FAULTS))];
    const struct trouble *second = &FAULTS[draw(state, ARRAY_LEN(FAULTS))];

    t->fault = first->fault;
    t->follows = first->follows;
    t->fault.request = 1 + (int)draw(state, (uint64_t)untroubled->requests);
    t->then = second->fault;
    t->then_follows = second->follows;
    t->then.request = 1 + (int)draw(state, (uint64_t)untroubled->requests);
}

static void request_and_event(struct trouble *t, uint64_t *state, const struct ending *untroubled)
{
    two_requests(t, state, untroubled);
    t->then.request = 0;
    t->tamper.how = TAMPERINGS[draw(state, ARRAY_LEN(TAMPERINGS))];
    t->tamper.event = 1 + (int)draw(state, (uint64_t)untroubled->events);
    t->tamper.late_ms = LATE_MS;
}

static void sample(void **state)
{
    const struct converge_row *row = *state;
    uint64_t seed = row->seed ? strtoull(row->seed, NULL, 10) : 20261121;
    uint64_t chance = seed ? seed : 1; /* xorshift never leaves 0 */
    struct ending untroubled = converge_untroubled(row->scenario, 1);
    struct ending e;
    int draws = DRAWS / row->step;
    int struck = 0;

    print_message("%s: seed %llu\n", row->scenario->name, (unsigned long long)seed);
    for (int i = 0; i < draws; i++) {
        struct trouble t = *row->trouble;
        t.ghosts = converge_may_leave_ghosts(row->scenario);
        if (t.tamper.event)
            request_and_event(&t, &chance, &untroubled);
        else
            two_requests(&t, &chance, &untroubled);
        struck += converge_check(row->scenario, &t, &untroubled, &e);
    }
    assert_true(struck > draws / 4);
    print_message("%s, %s: %d runs, both struck in %d\n", row->scenario->name, row->trouble->name, draws,
                  struck);
}

int main(int argc, char **argv)
{
    static const struct trouble TROUBLES[] = {{.name = "two-requests"},
                                              {.name = "request-and-event", .tamper = {.event = 1}}};

    return CONVERGE_MAIN(argc, argv, TROUBLES, sample);
}
