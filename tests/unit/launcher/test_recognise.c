/* test_recognise.c - what one line says of a training, and that others say nothing. */
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

/* What the line says, in words. */
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

static void test_lines(void **state)
{
    static const char *const lines[][2] = {
        /* our own */
        {"epoch 1/3, batch    16/64 with loss: 0.3716", "epoch 1/3, step of it 16/64, loss 0.3716"},
        {"epoch 1/2  step 299/512  loss 2.3098  8000 samples/s  0:00 left",
         "epoch 1/2, step 299/512, loss 2.3098, rate 8000"},
        {"epoch 2/8 with val loss: 4.6316, val accuracy: 0.1868", "epoch 2/8"},
        {"{\"event\":\"train\",\"epoch\":1,\"epochs\":2,\"step\":16,\"steps\":64,\"global_step\":16,\"loss\":"
         "2.5}",
         "epoch 1/2, step of it 16/64, loss 2.5"},
        {"{\"epoch\":1,\"epochs\":2,\"step\":80,\"steps\":64,\"loss\":2.5}", "epoch 1/2, loss 2.5"},
        {"{\"event\":\"times\",\"startup_s\":0.482,\"samples\":8192,\"samples_per_s\":3347.8}",
         "rate 3347.8"},
        {"[GPU0] Epoch 3 | Batchsize: 32 | Steps: 938", "epoch 3"},
        /* epochs */
        {"Epoch 3/10", "epoch 3/10"},
        {"Epoch [3/10]", "epoch 3/10"},
        {"epoch: 3 / 10 | loss=0.25", "epoch 3/10, loss 0.25"},
        {"Epoch 3: loss 0.5", "epoch 3, loss 0.5"},
        {"Epoch: [2][  10/5005]\tTime  0.5 ( 0.6)\tLoss 6.9e+00 (7.0e+00)", "epoch 2, loss 6.9"},
        /* steps */
        {"step 40/500", "step 40/500"},
        {"Iteration: 1,200/5,000 loss: 1.5", "step 1200/5000, loss 1.5"},
        {"2026-11-24 20:12:13,123 - INFO - train.py:17 - step 10/500 loss 1.5e-3",
         "step 10/500, loss 0.0015"},
        {"iter 300: loss 4.25, time 20.5ms, mfu 1.2%", "step 300, loss 4.25"},
        {"step 3/4 loss 0.5", "step 3/4, loss 0.5"},
        {"step 7/90 loss 1200 0.5", "step 7/90"},
        /* an index */
        {"step 7/90 loss -0.5", "step 7/90"},
        {"step 7/90 D: loss 0.5 G: loss 0.7", "step 7/90"},
        {"step 7/90 loss nan", "step 7/90"},
        {"step 0: loss 0.5", "step 0, loss 0.5"},
        {"train_loss: 0.5", "loss 0.5"},
        {"step 7/90, samples/sec: 812", "step 7/90, rate 812"},
        {"step 7/90, lr 0.1 samples/sec: 812", "step 7/90, rate 812"},
        {"step 7/90 loss inf", "step 7/90"},
        /* bars */
        {" 20%|##        | 8/40 [00:00<00:01, 77.3it/s, loss=0.467]", "step 8/40, loss 0.467"},
        {"Epoch 2/3:  20%|##        | 8/40 [1:00:00<00:01,  1.3s/it]", "epoch 2/3, step of it 8/40"},
        {"Epoch 2/3, loss 0.5:  20%|##        | 8/40 [1:00:00<00:01,  1.3s/it]",
         "epoch 2/3, step of it 8/40, loss 0.5"},
        {"Epochs:  20%|##        | 1/5 [00:00<00:01,  1.3s/it]", "epoch 2/5"},
        {"Epoch: 100%|##########| 5/5 [00:00<00:01,  1.3s/it]", "epoch 6/5"},
        {"\x1b[2KEpoch 0/2  \x1b[35m\xe2\x94\x81\x1b[0m 3/40 \x1b[2m0:00:00 \xe2\x80\xa2 0:00:01\x1b[0m "
         "56.3it/s "
         "train_loss: 0.757",
         "epoch 1/3, step of it 3/40, loss 0.757"},
        {"  1/100  2.31G  1.159  25  640: 25% \xe2\x94\x81\xe2\x94\x80 2/8 4.5it/s 0.5s<1.3s",
         "epoch 1/100, step of it 2/8"},
        {"  3/100  2.3G  0.05  640:  20%|##        | 8/40 [00:00<00:01, 7.3it/s]",
         "epoch 3/100, step of it 8/40"},
        /* Hugging Face Trainer */
        {"[transformers]   Num Epochs = 3", "epoch /3"},
        {"  Total optimization steps = 1,200", "step /1200"},
        {"{'loss': '0.75', 'learning_rate': '4e-05', 'epoch': '0.25'}", "epoch 1, loss 0.75"},
        {"{'loss': 0.75, 'epoch': 0.0}", "epoch 1, loss 0.75"},
        {"{'loss': 0.75, 'epoch': 2.0}", "epoch 2, loss 0.75"},
        {"{'train_runtime': '0.1', 'train_samples_per_second': '1846', 'train_loss': '0.76', 'epoch': '3'}",
         "epoch 3, loss 0.76, rate 1846"},
        {"train loss: 0.5  val loss: 0.25", "loss 0.5"},
        /* another pair, or an order, leaves open what the numbers are of */
        {"(0/4) Epoch 3/10 loss 0.5", "epoch 3, loss 0.5"},
        {"Epoch [3/10][40/500] loss 0.5", "epoch 3, loss 0.5"},
        {"epoch 3, step 40/500, loss 0.5", "epoch 3, loss 0.5"},
        {"step 40/500, epoch 3/4, loss 0.5", "epoch 3, loss 0.5"},
        {"step 5/10 of level 3", ""},
        {"epoch 3/4, loss 0.5, val acc: 45/50", "epoch 3/4, loss 0.5"},
        {"epoch 3/4, step 40, loss 0.5", "epoch 3/4, loss 0.5"},
        /* one run of several: nobody knows from then on how far all of them are */
        {"Model 1/5", "several"},
        {"Training model 1 of 5", "several"},
        {"Task A: epoch 3/3 loss 0.5", "epoch 3, loss 0.5"},
        {"client 3 epoch 3/3", "epoch 3"},
        {"task 2: step 30/40", ""},
        {"Finished epoch 3/3, saved the model", "epoch 3/3"},
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
        {"level=info step 3/40", "step 3/40"},
        {"step 3/40 of model 1/1", ""},
    };

    (void)state;
    check(lines, ARRAY_LEN(lines));
}

/* Bytes that are no text; the golden lines have the rest of what says nothing. */
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
