/* test_cursor.c - the time of a schedule by samples, and what an older checkpoint's counts tell of it. */
#include "test.h"

#include "trainer/state/cursor.h"

/* Where a run of steps of `each` samples is behind `steps` steps. */
static struct cursor walked(int64_t items, int64_t each, int64_t steps)
{
    const int64_t of_epoch = (items + each - 1) / each;

    return (struct cursor){.epoch = steps / of_epoch + 1,
                           .consumed = steps % of_epoch * each,
                           .epoch_step = steps % of_epoch,
                           .step = steps,
                           .items = items};
}

/* Undisturbed, the time is the number of steps, to the bit; with fewer or more samples in a step it is between two. */
static void time_is_steps_of_the_first_world(void **state)
{
    (void)state;
    for (int64_t items = 1; items < 40; items += 3)
        for (int64_t each = 1; each < 12; each++)
            for (int64_t steps = 0; steps < 100; steps++) {
                struct cursor c = walked(items, each, steps);
                c.step_samples = each;
                assert_true(cursor_time(&c) == (double)steps);
                c.step_samples = 2 * each;
                if (c.consumed + 2 * each <= items)
                    assert_true(cursor_time(&c) ==
                                (double)((c.epoch - 1) * cursor_steps(&c)) + (double)c.epoch_step / 2);
            }
    /* Padding is no time. */
    struct cursor c = {.epoch = 2, .consumed = 12, .items = 10, .step_samples = 5};
    assert_true(cursor_time(&c) == 4);
}

/* The present world's step explains the counts, or that of the steps taken does, or nothing: ranks came and went. */
static void an_older_checkpoint_tells_its_steps(void **state)
{
    (void)state;
    for (int64_t each = 1; each < 12; each++)
        for (int64_t now = 1; now < 12; now++)
            for (int64_t steps = 0; steps < 60; steps++) {
                struct cursor c = walked(40, each, steps);
                const bool found = cursor_find_step(&c, now);
                if (c.epoch_step)
                    assert_true(found && c.step_samples == each);
                else
                    assert_true(c.step_samples == now &&
                                found == (steps == 0 || cursor_time(&c) == (double)steps));
            }
    struct cursor mixed = {.epoch = 2, .consumed = 12, .epoch_step = 2, .step = 8, .items = 40};
    assert_false(cursor_find_step(&mixed, 8));
    assert_int_equal(mixed.step_samples, 8);
    /* At an epoch's end, with padding. */
    struct cursor end = {.epoch = 1, .consumed = 42, .epoch_step = 7, .step = 7, .items = 40};
    assert_true(cursor_find_step(&end, 3));
    assert_int_equal(end.step_samples, 6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(time_is_steps_of_the_first_world),
        cmocka_unit_test(an_older_checkpoint_tells_its_steps),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
