/* test_recognise.c - the progress that is read from one line, and lines from which none is read. */
#include "common/cleanup.h"
#include "common/text.h"
#include "launcher/progress/recognise.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void add(char *out, const char *name, int64_t n, int64_t of)
{
    if (n >= 0 || of >= 0)
        text_add(out, 200, "%s%s ", *out ? ", " : "", name);
    if (n >= 0)
        text_add(out, 200, "%lld", (long long)n);
    if (of >= 0)
        text_add(out, 200, "/%lld", (long long)of);
}

/* The progress in the line, as text. */
static const char *says(const char *line)
{
    static char out[200];
    struct progress_seen s;
    const bool any = recognise_line(sv_from(line), &s);

    *out = '\0';
    add(out, "epoch", s.epoch, s.total_epochs);
    add(out, s.in_epoch ? "step of it" : "step", s.step, s.total_steps);
    if (!isnan(s.loss))
        text_add(out, sizeof(out), "%sloss %g", *out ? ", " : "", s.loss);
    if (!isnan(s.samples_per_second))
        text_add(out, sizeof(out), "%srate %g", *out ? ", " : "", s.samples_per_second);
    if (s.several)
        text_add(out, sizeof(out), "%sseveral", *out ? ", " : "");
    assert_int_equal(any, *out != '\0');
    return out;
}

static void check(const char *const lines[][2], size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(says(lines[i][0]), lines[i][1]) != 0)
            fail_msg("%s: \"%s\", wanted \"%s\"", lines[i][0], says(lines[i][0]), lines[i][1]);
}

/* What percent, step, loss and rate do not show: those stand in tests/golden/progress/lines/forms.txt. */
static void test_lines(void **state)
{
    static const char *const lines[][2] = {
        /* our own */
        {"[GPU0] Epoch 3 | Batchsize: 32 | Steps: 938", "epoch 3"},
        /* epochs */
        {"Epoch 3: loss 0.5", "epoch 3, loss 0.5"},
        {"Epoch: [2][  10/5005]\tTime  0.5 ( 0.6)\tLoss 6.9e+00 (7.0e+00)", "epoch 2, loss 6.9"},
        /* bars */
        {"\x1b[2KEpoch 0/2  \x1b[35m\xe2\x94\x81\x1b[0m 3/40 \x1b[2m0:00:00 \xe2\x80\xa2 0:00:01\x1b[0m "
         "56.3it/s "
         "train_loss: 0.757",
         "epoch 1/3, step of it 3/40, loss 0.757"},
        {"  1/100  2.31G  1.159  25  640: 25% \xe2\x94\x81\xe2\x94\x80 2/8 4.5it/s 0.5s<1.3s",
         "epoch 1/100, step of it 2/8"},
        /* Hugging Face Trainer */
        {"[transformers]   Num Epochs = 3", "epoch /3"},
        {"  Total optimization steps = 1,200", "step /1200"},
        {"{'loss': '0.75', 'learning_rate': '4e-05', 'epoch': '0.25'}", "epoch 1, loss 0.75"},
        {"{'loss': 0.75, 'epoch': 0.0}", "epoch 1, loss 0.75"},
        {"{'loss': 0.75, 'epoch': 2.0}", "epoch 2, loss 0.75"},
        {"{'train_runtime': '0.1', 'train_samples_per_second': '1846', 'train_loss': '0.76', 'epoch': '3'}",
         "epoch 3, loss 0.76, rate 1846"},
        /* another pair, or an order, leaves open what the numbers are of */
        {"(0/4) Epoch 3/10 loss 0.5", "epoch 3, loss 0.5"},
        {"Epoch [3/10][40/500] loss 0.5", "epoch 3, loss 0.5"},
        {"epoch 3, step 40/500, loss 0.5", "epoch 3, loss 0.5"},
        {"step 40/500, epoch 3/4, loss 0.5", "epoch 3, loss 0.5"},
        {"step 5/10 of level 3", ""},
        /* one run of several: nobody knows from then on how far all of them are */
        {"Model 1/5", "several"},
        {"Training model 1 of 5", "several"},
        {"Task A: epoch 3/3 loss 0.5", "epoch 3, loss 0.5"},
        {"client 3 epoch 3/3", "epoch 3"},
        {"task 2: step 30/40", ""},
        {"=== Fold 1/5 ===", "several"},
        {"Fold 2", "several"},
        {"fold1: epoch 3/3", "epoch 3/3, several"},
        {"[fold 2] step 40/50", "step 40/50, several"},
        {"seed 1/3 epoch 2/2", "epoch 2, several"},
        {"Round 1/10 | client 3", "several"},
        {"Trial 3: epoch 1/3", "epoch 1/3, several"},
        {"episode 3/100", "several"},
        {"Phase 1/2", "several"},
        {"Stage: [1/2]", "several"},
        {"fold 1:  20%|##        | 8/40 [00:00<00:01, 77.3it/s]", "several"},
        {"step 3/40 of model 1/1", ""},
    };

    (void)state;
    check(lines, ARRAY_LEN(lines));
}

/* Bytes that are no text; the golden lines have the other lines without progress. */
static void test_nothing(void **state)
{
    static const char *const lines[] = {"", "\x1b", "\x1b[31", "\xff\xfe\x80 1/2",
                                        "Epoch 1/2 \xe2\x94\x81\xe2\x94\x81 3/40 0:00:01"};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(lines); i++)
        if (*says(lines[i]))
            fail_msg("%s: %s", lines[i], says(lines[i]));
}

static void test_hostile(void **state)
{
    static char line[1 << 20];
    struct progress_seen s;

    (void)state;
    memset(line, '9', sizeof(line));
    assert_false(recognise_line((struct sv){line, sizeof(line)}, &s));
    memcpy(line, "step ", 5);
    assert_false(recognise_line((struct sv){line, sizeof(line)}, &s));
    memset(line, 0, sizeof(line));
    assert_false(recognise_line((struct sv){line, sizeof(line)}, &s));
    memset(line, '\x1b', sizeof(line));
    assert_false(recognise_line((struct sv){line, sizeof(line)}, &s));
    /* behind what is looked at */
    memset(line, ' ', sizeof(line));
    memcpy(line + RECOGNISE_LINE_BYTES, "step 1/20", 9);
    assert_false(recognise_line((struct sv){line, sizeof(line)}, &s));
    memcpy(line + RECOGNISE_LINE_BYTES - 9, "step 1/20", 9);
    assert_true(recognise_line((struct sv){line, sizeof(line)}, &s));
    /* a NUL ends nothing */
    assert_true(recognise_line((struct sv){"\0step 1/20\0", 11}, &s));
    assert_int_equal(s.total_steps, 20);
    assert_true(recognise_line((struct sv){"step 1000000000000000/1000000000000000", 38}, &s));
    assert_int_equal(s.step, PROGRESS_COUNT_MAX);
    assert_false(recognise_line((struct sv){"step 1000000000000001/1000000000000001", 38}, &s));
}

static void count(void *ctx, const struct progress_seen *s)
{
    int64_t *sum = ctx;
    *sum = *sum * 100 + s->step;
}

static void test_stream_in_any_pieces(void **state)
{
    static const char text[] = "step 1/90\rstep 2/90\r\n\nno\nstep 3/90\nstep 4/90";

    (void)state;
    for (size_t piece = 1; piece <= sizeof(text); piece++) {
        struct recogniser r = {.len = 0};
        int64_t sum = 0;
        for (size_t i = 0; i < sizeof(text) - 1; i += piece)
            recogniser_take(&r, text + i, sizeof(text) - 1 - i < piece ? sizeof(text) - 1 - i : piece, count,
                            &sum);
        assert_int_equal(sum, 10203);
        recogniser_take(&r, "\n", 1, count, &sum);
        assert_int_equal(sum, 1020304);
    }
}

static void test_stream_drops_the_rest_of_a_long_line(void **state)
{
    struct recogniser r = {.len = 0};
    int64_t sum = 0;

    (void)state;
    recogniser_take(&r, "step 1/90 ", 10, count, &sum);
    for (int i = 0; i < 100000; i++)
        recogniser_take(&r, "0123456789", 10, count, &sum);
    recogniser_take(&r, "\nstep 2/90\n", 11, count, &sum);
    assert_int_equal(sum, 102);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines),
        cmocka_unit_test(test_nothing),
        cmocka_unit_test(test_hostile),
        cmocka_unit_test(test_stream_in_any_pieces),
        cmocka_unit_test(test_stream_drops_the_rest_of_a_long_line),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
