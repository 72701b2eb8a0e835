/* test_cursor.c - the time of a schedule by samples. */
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(time_is_steps_of_the_first_world),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
