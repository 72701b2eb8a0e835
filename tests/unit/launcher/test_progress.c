/* test_progress.c - what else is known beside percent, step, loss and rate, with made-up clocks; tests/golden/progress/lines has those. */
#include "common/cleanup.h"
#include "launcher/progress/progress.h"
#include "launcher/progress/recognise.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void say_at(struct progress *p, int64_t now_ms, const char *line)
{
    struct progress_seen s;

    if (recognise_line(sv_from(line), &s))
        progress_take(p, &s, false, now_ms, 1700000000000 + now_ms);
}

static void test_nothing_yet(void **state)
{
    struct progress p;

    (void)state;
    progress_init(&p);
    assert_true(isnan(p.now.percent) && p.now.step == -1);
    assert_int_equal(p.wall_ms, 0);
    say_at(&p, 5, "Test: [3/10] loss 0.5");
    assert_int_equal(p.wall_ms, 0);
    say_at(&p, 5, "train loss: 0.5");
    assert_true(isnan(p.now.percent) && p.now.step == -1);
    assert_int_equal(p.wall_ms, 1700000000005);
    say_at(&p, 6, "iter 1200: loss 0.5");
    assert_true(isnan(p.now.percent) && p.now.step == 1200);
    say_at(&p, 6, "step 299/300");
    assert_true(p.now.percent > 99 && p.now.step == 299);
}

/* What comes behind the last epoch is in none. */
static void test_behind_the_last_epoch(void **state)
{
    static const char *const ends[] = {"Epochs: 100%|##| 2/2 [00:00<00:00, 5it/s]", "Epoch 2/2 loss: 0.5"};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
        struct progress p;
        progress_init(&p);
        say_at(&p, 0, "Epoch 1/2:  9%|# | 10/10 [00:00<00:01, 5it/s]");
        say_at(&p, 1, ends[i]);
        say_at(&p, 2, " 9%|# | 1/10 [00:00<00:01, 5it/s]");
        assert_true(p.now.percent == 100 && p.now.epoch == 2 && p.now.total_epochs == 2);
    }
}

static void test_no_totals(void **state)
{
    struct progress p;

    (void)state;
    progress_init(&p);
    say_at(&p, 0, "[Epoch 0/200] [Batch 0/938]");
    say_at(&p, 1, "[Epoch 100/200] [Batch 469/938]");
    assert_true(isnan(p.now.percent) && p.now.step == 94269 && p.now.epoch == 101);
    assert_true(p.now.total_epochs == -1 && p.now.total_steps == -1);
    progress_init(&p);
    say_at(&p, 0, "Fold 1/5");
    say_at(&p, 1, "epoch 1/3, batch 4/5");
    assert_true(p.now.epoch == 1 && p.now.total_epochs == -1 && p.now.step == -1 && p.now.total_steps == -1);
}

/* Steps of 1000 at that many ms each, from `from`; returns the time left that is shown at last. */
static int64_t run(struct progress *p, int64_t *now_ms, int from, int to, int64_t step_ms)
{
    char line[64];

    for (int i = from; i <= to; i++) {
        *now_ms += step_ms;
        snprintf(line, sizeof(line), "step %d/1000", i);
        say_at(p, *now_ms, line);
    }
    return p->eta_ms;
}

static void test_time_left(void **state)
{
    struct progress p;
    int64_t now = 1000;

    (void)state;
    progress_init(&p);
    assert_int_equal(run(&p, &now, 0, 0, 2000), -1);
    assert_int_equal(run(&p, &now, 1, 1, 2000), -1); /* one estimate agrees with nothing */
    assert_in_range(run(&p, &now, 2, 2, 2000), 998 * 2000 - 10, 998 * 2000 + 10);
    assert_in_range(run(&p, &now, 3, 500, 2000), 500 * 2000 - 10, 500 * 2000 + 10);
    run(&p, &now, 501, 1000, 2000);
    assert_int_equal(p.eta_ms, 0);
}

/* The first step after a checkpoint: it was not done in this second. */
static void test_resumed(void **state)
{
    struct progress p;
    int64_t now = 1000;

    (void)state;
    progress_init(&p);
    assert_int_equal(run(&p, &now, 900, 901, 1000), -1);
    assert_in_range(run(&p, &now, 902, 910, 1000), 90 * 1000 - 10, 90 * 1000 + 10);
}

/* After a position that was taken back the measuring begins again. */
static void test_time_left_of_what_began_again(void **state)
{
    struct progress p;
    int64_t now = 1000;

    (void)state;
    progress_init(&p);
    run(&p, &now, 0, 500, 1000);
    assert_int_equal(run(&p, &now, 1, 4, 4000), -1);
    assert_in_range(run(&p, &now, 5, 20, 4000), 980 * 4000 - 10, 980 * 4000 + 10);
}

static void test_time_left_does_not_jump(void **state)
{
    struct progress p;
    int64_t now = 1000, before, after;

    (void)state;
    progress_init(&p);
    before = run(&p, &now, 0, 500, 1000);
    /* a pause for validation, once as long as 60 steps */
    now += 60000;
    after = run(&p, &now, 501, 501, 1000);
    assert_true(after == -1 || (after > before / 2 && after < before * 3 / 2));
    after = run(&p, &now, 502, 520, 1000);
    assert_in_range(after, before * 3 / 4, before * 3 / 2);
    /* twice as fast from now on: it follows within a quarter of the run */
    after = run(&p, &now, 521, 800, 500);
    assert_in_range(after, 200 * 500, 200 * 700);
}

static void test_bursts_are_no_rate(void **state)
{
    struct progress p;
    int64_t now = 1000;

    (void)state;
    progress_init(&p);
    run(&p, &now, 0, 100, 0); /* a buffer is flushed: a hundred lines at once */
    assert_int_equal(p.eta_ms, -1);
    run(&p, &now, 101, 110, 1000);
    assert_true(p.eta_ms == -1 || p.eta_ms > 100000);
}

static void test_file_counts_alone(void **state)
{
    struct progress_seen s = progress_nothing();
    struct progress p;

    (void)state;
    progress_init(&p);
    say_at(&p, 0, "step 50/100");
    s.step = 10;
    s.total_steps = 40;
    s.loss = 0.5;
    progress_take(&p, &s, true, 1000, 1);
    assert_true(p.from_file && p.now.percent == 25 && p.now.step == 10 && p.now.loss == 0.5);
    say_at(&p, 2000, "step 51/100 loss 3");
    assert_true(p.now.percent == 25 && p.now.step == 10 && p.now.loss == 0.5);
    s.percent = 30;
    progress_take(&p, &s, true, 3000, 1);
    assert_true(p.now.percent == 30);
    s = progress_nothing();
    s.epoch = 2;
    s.total_epochs = 4;
    for (int i = 0; i < 3; i++)
        progress_take(&p, &s, true, 3000, 1);
    assert_true(p.now.percent == 25 && p.now.epoch == 2 && p.now.total_epochs == 4 && p.now.step == -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing_yet),
        cmocka_unit_test(test_behind_the_last_epoch),
        cmocka_unit_test(test_no_totals),
        cmocka_unit_test(test_time_left),
        cmocka_unit_test(test_resumed),
        cmocka_unit_test(test_time_left_of_what_began_again),
        cmocka_unit_test(test_time_left_does_not_jump),
        cmocka_unit_test(test_bursts_are_no_rate),
        cmocka_unit_test(test_file_counts_alone),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
