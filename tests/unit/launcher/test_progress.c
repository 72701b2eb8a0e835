/* test_progress.c - percent, steps and time left from lines, with made-up clocks. */
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

/* Lines in turn, and the percent after each; -1: none. */
struct said {
    const char *line;
    double percent;
};

static void check(const struct said *said, size_t n)
{
    struct progress p;

    progress_init(&p);
    for (size_t i = 0; i < n; i++) {
        say_at(&p, (int64_t)i, said[i].line);
        if (said[i].percent < 0 ? !isnan(p.now.percent) : !(fabs(p.now.percent - said[i].percent) < 0.05))
            fail_msg("line %zu, %s: %g, wanted %g", i, said[i].line, p.now.percent, said[i].percent);
    }
}
#define CHECK(...)                                                                                           \
    check((const struct said[]){__VA_ARGS__}, sizeof((struct said[]){__VA_ARGS__}) / sizeof(struct said))

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

static void test_epochs_and_steps(void **state)
{
    (void)state;
    CHECK({"Epoch [1/2], Step [10/40], Loss: 0.5", 12.5}, {"Epoch [1/2], Step [40/40], Loss: 0.5", 50},
          {"Epoch [2/2], Step [20/40], Loss: 0.5", 75});
    CHECK({"Epoch 1/4", 0}, {"Epoch 1/4 loss: 0.5", 25}, {"Epoch 2/4", 25}, {"Epoch 2/4 val loss: 0.5", 50});
    /* and again, of a second fold */
    CHECK({"Epoch 1/2 loss: 0.5", 50}, {"Epoch 2/2 loss: 0.5", 100}, {"Epoch 2/2 val loss: 0.5", 100},
          {"Epoch 1/2", -1}, {"Epoch 1/2 loss: 0.5", -1}, {"Epoch 2/2 loss: 0.5", -1});
    /* from 0, of 3 or of 4 */
    CHECK({"Epoch 0/3", -1}, {"Epoch 0/3 loss: 0.5", -1}, {"Epoch 3/3", -1}, {"Epoch 3/3 loss: 0.5", -1});
    /* one run of several, told on a line of its own */
    CHECK({"Model 1/5", -1}, {"Epoch 1/2 loss: 0.5", -1}, {"Epoch 2/2 loss: 0.5", -1}, {"step 10/40", -1});
    CHECK({"Epoch 1/2 loss: 0.5", 50}, {"Fold 2", -1}, {"Epoch 1/2 loss: 0.5", -1});
    CHECK({"Epoch 3", -1}, {"Epoch: [3][10/40] loss 0.5", -1}, {"Epoch 4/10", 30});
    /* a line without the total beside those that have it */
    CHECK({"epoch 2/4, batch 5/10 loss 0.5", 37.5}, {"[GPU: 0] Epoch: 0 | Batchsize: 32 | Steps: 10", 37.5},
          {"[GPU: 0] Epoch: 0 | Batchsize: 32 | Steps: 10", 37.5},
          {"[GPU: 0] Epoch: 0 | Batchsize: 32 | Steps: 10", 37.5}, {"epoch 2/4, batch 6/10 loss 0.5", 40});
    CHECK({"Num Epochs = 4", -1}, {"{'loss': 0.5, 'epoch': 0.5}", 12.5}, {"{'loss': 0.5, 'epoch': 1.0}", 25});
    CHECK({"Total optimization steps = 200", -1}, {"step 50: loss 0.5", 25});
    CHECK({"Epoch 1/2", 0}, {"Train Epoch: 1 [1280/6400 (20%)]\tLoss: 0.5", 0});
    CHECK({"Epoch [1/2][3/10] loss 0.5", -1}, {"Train: [2/300][630/1251]", -1});
    /* a loss ends an epoch, unless something counts in it, or there is more than one */
    CHECK({"Epoch 1/4 iters 100 loss: 0.5", 0}, {"Epoch 1/4 lr 0.1 loss: 0.5", 25});
    CHECK({"Epoch 1/4 loss: 0.9", 25}, {"Epoch 1/4 loss: 0.8", 25}, {"Epoch 1/4 loss: 0.7", 25},
          {"Epoch 1/4 loss: 0.6", 0}, {"Epoch 4/4 loss: 0.5", 75});
    CHECK({"Num Epochs = 2", -1}, {"{'loss': 0.5, 'epoch': 2.0}", 100},
          {"{'train_loss': 0.5, 'epoch': 2.0}", 100}, {"{'train_loss': 0.5, 'epoch': 2.0}", 100},
          {"{'train_loss': 0.5, 'epoch': 2.0}", 100});
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

#define BAR(n, total) " 9%|# | " #n "/" #total " [00:00<00:01, 5it/s]"

static void test_bars_of_epochs(void **state)
{
    (void)state;
    CHECK({"Epoch 1/2: " BAR(5, 10), 25}, {"Epoch 1/2: " BAR(10, 10), 50}, {"Epoch 2/2: " BAR(0, 10), 50});
    CHECK({"Epoch 1/2", 0}, {BAR(0, 10), 0}, {BAR(5, 10), 25}, {BAR(10, 10), 50}, {"val: " BAR(1, 3), 50},
          {"Epoch 2/2", 50}, {BAR(0, 10), 50}, {BAR(1, 10), 55});
    /* the line behind the epoch; the bar's end comes behind that, out of another pipe */
    CHECK({"Epoch 1/2", 0}, {BAR(9, 10), 45}, {"Epoch 1/2 loss: 0.5", 50}, {BAR(10, 10), 50},
          {BAR(0, 10), 50}, {BAR(5, 10), 75}, {"Epoch 2/2 loss: 0.5", 100}, {BAR(10, 10), 100});
    /* a bar of validation without words has another total */
    CHECK({"Epoch 1/2", 0}, {BAR(10, 10), 50}, {BAR(1, 4), 50}, {BAR(4, 4), 50}, {"Epoch 2/2", 50},
          {BAR(5, 10), 75});
    /* nested; without words nobody knows what the outer one is of */
    CHECK({"Epochs: " BAR(0, 2), 0}, {BAR(5, 10), 25}, {BAR(10, 10), 50}, {"Epochs: " BAR(1, 2), 50},
          {BAR(5, 10), 75}, {"Epochs: " BAR(2, 2), 100});
    CHECK({BAR(0, 2), 0}, {BAR(5, 10), -1}, {BAR(10, 10), -1}, {BAR(1, 2), -1}, {BAR(2, 2), -1});
}

static void test_bars_of_the_run(void **state)
{
    (void)state;
    CHECK({BAR(0, 10), 0}, {BAR(5, 10), 50}, {"Validating: " BAR(1, 2), 50}, {BAR(6, 10), 60});
    /* evaluations without words in between */
    CHECK({BAR(0, 48), 0}, {BAR(16, 48), 33.3}, {BAR(0, 8), 33.3}, {BAR(8, 8), 33.3}, {BAR(24, 48), 50},
          {BAR(8, 8), 50});
    /* the bar is of the run, the lines of epochs follow it */
    CHECK({BAR(0, 90), 0}, {BAR(30, 90), 33.3}, {"Epoch 1/3 loss: 0.5", 33.3}, {BAR(31, 90), 34.4});
    CHECK({BAR(0, 10), 0}, {BAR(3, 10), 30}, {"Epoch 3 loss: 0.5", 30}, {BAR(4, 10), 40});
    /* one that goes on in the second epoch may be of the run */
    CHECK({"Epoch 1/3", 0}, {BAR(0, 90), 0}, {BAR(29, 90), 10.74}, {"Epoch 2/3", 33.3}, {BAR(31, 90), -1},
          {BAR(90, 90), -1});
    /* a bar that begins again is of an epoch, and nobody says of how many */
    CHECK({BAR(0, 10), 0}, {BAR(10, 10), 100}, {BAR(0, 10), -1}, {BAR(5, 10), -1}, {BAR(10, 10), -1});
    /* so may be another one behind its end: what came before, or what comes now, is not the training */
    CHECK({BAR(10, 10), 100}, {BAR(1, 4), -1}, {BAR(4, 4), -1}, {BAR(1, 10), -1});
    CHECK({"step 10/10", 100}, {"step 1/10", -1}, {"step 2/10", -1});
    CHECK({"step 30/40", 75}, {"step 1/1000", -1}, {"step 31/40", -1});
    /* until lines tell of the epochs */
    CHECK({BAR(5, 10), 50}, {BAR(1, 1000), -1}, {"Epoch 2/4", 25});
    CHECK({BAR(10, 10), 100}, {"Epoch 2/4", 25}, {BAR(1, 10), 27.5});
    /* a download beside it */
    CHECK({BAR(5, 90), 5.6}, {"Epoch 1/3", 5.6}, {" 9%|# | 5/28881 [00:00<00:01, 23112.02it/s]", 5.6},
          {BAR(6, 90), 6.7});
    CHECK({BAR(10, 10), 100}, {BAR(1, 10), -1}, {"Epoch 2/4", 25}, {BAR(1, 10), 27.5});
}

static void test_percent_does_not_fall(void **state)
{
    (void)state;
    CHECK({"step 50/100", 50}, {"step 49/100", 50}, {"step 51/100", 51});
    /* unless the training began again */
    CHECK({"step 50/100", 50}, {"step 1/100", 50}, {"step 2/100", 50}, {"step 3/100", 3}, {"step 4/100", 4});
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

/* After a position that was taken back the measuring begins anew. */
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

static void test_bounds(void **state)
{
    (void)state;
    CHECK({"epoch 1000000000000000/1000000000000000, batch 1000000000000000/1000000000000000", 100},
          {"epoch 1/1000000000000000", -1});
    CHECK({"Epoch 1/1000000000000000", 0}, {BAR(1, 1000000000000000), 0});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing_yet),
        cmocka_unit_test(test_epochs_and_steps),
        cmocka_unit_test(test_behind_the_last_epoch),
        cmocka_unit_test(test_no_totals),
        cmocka_unit_test(test_bars_of_epochs),
        cmocka_unit_test(test_bars_of_the_run),
        cmocka_unit_test(test_percent_does_not_fall),
        cmocka_unit_test(test_time_left),
        cmocka_unit_test(test_resumed),
        cmocka_unit_test(test_time_left_of_what_began_again),
        cmocka_unit_test(test_time_left_does_not_jump),
        cmocka_unit_test(test_bursts_are_no_rate),
        cmocka_unit_test(test_file_counts_alone),
        cmocka_unit_test(test_bounds),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
