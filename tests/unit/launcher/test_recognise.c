/* test_recognise.c - what one line says of a training, and that others say nothing. */
#include "common/cleanup.h"
#include "launcher/progress/recognise.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#define NONE (-1)

/* Which words of the line are what. */
struct case_ {
    const char *line;
    int64_t epoch, total_epochs, step, total_steps; /* 0 totals: absent */
    bool in_epoch;
    double loss, samples; /* 0: absent */
};

static bool same(double got, double want)
{
    return want == 0 ? isnan(got) : fabs(got - want) < 1e-9 * fabs(want);
}

static void check(const struct case_ *c)
{
    struct progress_seen s;
    const bool says = recognise_line(sv_from(c->line), &s);

    if (!says || s.download || s.several || s.in_epoch != c->in_epoch || s.step != c->step ||
        s.total_steps != c->total_steps || s.epoch != c->epoch || s.total_epochs != c->total_epochs ||
        !same(s.loss, c->loss) || !same(s.samples_per_second, c->samples))
        fail_msg("%s: says %d, download %d, several %d, epoch %lld/%lld, step %lld/%lld (in it: %d), loss "
                 "%g, samples/s %g",
                 c->line, says, s.download, s.several, (long long)s.epoch, (long long)s.total_epochs,
                 (long long)s.step, (long long)s.total_steps, s.in_epoch, s.loss, s.samples_per_second);
}

static void test_lines(void **state)
{
    static const struct case_ cases[] = {
        /* our own */
        {"epoch 1/3, batch    16/64 with loss: 0.3716", 1, 3, 16, 64, true, 0.3716, 0},
        {"epoch 1/2  step 299/512  loss 2.3098  8000 samples/s  0:00 left", 1, 2, 299, 512, false, 2.3098, 0},
        {"epoch 2/8 with val loss: 4.6316, val accuracy: 0.1868", 2, 8, NONE, NONE, false, 0, 0},
        {"{\"event\":\"train\",\"epoch\":1,\"epochs\":2,\"step\":16,\"steps\":64,\"global_step\":16,\"loss\":"
         "2.5}",
         1, 2, 16, 64, true, 2.5, 0},
        {"{\"event\":\"times\",\"startup_s\":0.482,\"samples\":8192,\"samples_per_s\":3347.8}", NONE, NONE,
         NONE, NONE, false, 0, 3347.8},
        {"[GPU0] Epoch 3 | Batchsize: 32 | Steps: 938", 3, NONE, NONE, NONE, false, 0, 0},
        /* epochs */
        {"Epoch 3/10", 3, 10, NONE, NONE, false, 0, 0},
        {"Epoch [3/10]", 3, 10, NONE, NONE, false, 0, 0},
        {"epoch: 3 / 10 | loss=0.25", 3, 10, NONE, NONE, false, 0.25, 0},
        {"Epoch 3: loss 0.5", 3, NONE, NONE, NONE, false, 0.5, 0},
        {"Epoch: [2][  10/5005]\tTime  0.5 ( 0.6)\tLoss 6.9e+00 (7.0e+00)", 2, NONE, NONE, NONE, false, 6.9,
         0},
        /* steps */
        {"step 40/500", NONE, NONE, 40, 500, false, 0, 0},
        {"Iteration: 1,200/5,000 loss: 1.5", NONE, NONE, 1200, 5000, false, 1.5, 0},
        {"2026-11-24 20:12:13,123 - INFO - train.py:17 - step 10/500 loss 1.5e-3", NONE, NONE, 10, 500, false,
         1.5e-3, 0},
        {"iter 300: loss 4.25, time 20.5ms, mfu 1.2%", NONE, NONE, 300, NONE, false, 4.25, 0},
        {"step 3/4 loss 0.5", NONE, NONE, 3, 4, false, 0.5, 0},
        {"step 7/90 loss 1200 0.5", NONE, NONE, 7, 90, false, 0, 0}, /* an index */
        {"step 7/90 loss -0.5", NONE, NONE, 7, 90, false, 0, 0},
        {"step 7/90 D: loss 0.5 G: loss 0.7", NONE, NONE, 7, 90, false, 0, 0},
        {"step 7/90 loss nan", NONE, NONE, 7, 90, false, 0, 0},
        {"step 7/90 loss inf", NONE, NONE, 7, 90, false, 0, 0},
        /* bars */
        {" 20%|##        | 8/40 [00:00<00:01, 77.3it/s, loss=0.467]", NONE, NONE, 8, 40, false, 0.467, 0},
        {"Epoch 2/3:  20%|##        | 8/40 [1:00:00<00:01,  1.3s/it]", 2, 3, 8, 40, true, 0, 0},
        {"Epoch 2/3, loss 0.5:  20%|##        | 8/40 [1:00:00<00:01,  1.3s/it]", 2, 3, 8, 40, true, 0.5, 0},
        {"Epochs:  20%|##        | 1/5 [00:00<00:01,  1.3s/it]", 2, 5, NONE, NONE, false, 0, 0},
        {"Epoch: 100%|##########| 5/5 [00:00<00:01,  1.3s/it]", 5, 5, NONE, NONE, false, 0, 0},
        {"\x1b[2KEpoch 0/2  \x1b[35m\xe2\x94\x81\x1b[0m 3/40 \x1b[2m0:00:00 \xe2\x80\xa2 0:00:01\x1b[0m "
         "56.3it/s "
         "train_loss: 0.757",
         1, 3, 3, 40, true, 0.757, 0},
        {"  1/100  2.31G  1.159  25  640: 25% \xe2\x94\x81\xe2\x94\x80 2/8 4.5it/s 0.5s<1.3s", 1, 100, 2, 8,
         true, 0, 0},
        {"  3/100  2.3G  0.05  640:  20%|##        | 8/40 [00:00<00:01, 7.3it/s]", 3, 100, 8, 40, true, 0, 0},
        /* Hugging Face Trainer */
        {"[transformers]   Num Epochs = 3", NONE, 3, NONE, NONE, false, 0, 0},
        {"  Total optimization steps = 1,200", NONE, NONE, NONE, 1200, false, 0, 0},
        {"{'loss': '0.75', 'learning_rate': '4e-05', 'epoch': '0.25'}", 1, NONE, NONE, NONE, false, 0.75, 0},
        {"{'loss': 0.75, 'epoch': 2.0}", 2, NONE, NONE, NONE, false, 0.75, 0},
        {"{'train_runtime': '0.1', 'train_samples_per_second': '1846', 'train_loss': '0.76', 'epoch': '3'}",
         3, NONE, NONE, NONE, false, 0.76, 1846},
        {"train loss: 0.5  val loss: 0.25", NONE, NONE, NONE, NONE, false, 0.5, 0},
        /* another pair, or an order, leaves open what the numbers are of */
        {"(0/4) Epoch 3/10 loss 0.5", 3, NONE, NONE, NONE, false, 0.5, 0},
        {"Epoch [3/10][40/500] loss 0.5", 3, NONE, NONE, NONE, false, 0.5, 0},
        {"epoch 3, step 40/500, loss 0.5", 3, NONE, NONE, NONE, false, 0.5, 0},
        {"step 40/500, epoch 3/4, loss 0.5", 3, 4, NONE, NONE, false, 0.5, 0},
        {"epoch 3/4, step 40, loss 0.5", 3, 4, NONE, NONE, false, 0.5, 0},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        check(&cases[i]);
}

/* What real logs have, and is no progress of a training. */
static void test_nothing(void **state)
{
    static const char *const lines[] = {
        "",
        "loss",
        "date 11/24",
        "step 11/24/2026 loss 0.5",
        "2026/11/24 10:00:00 loss 0.5",
        "[2026/11/24] loss 0.5",
        "[INFO] 3/4 shards downloaded",
        "GPU 0/8",
        "rank 0/8 started",
        "[1/2] Building CXX object a.o",
        "(3/4) Installing foo",
        "/data/10/20/epoch",
        "GPU 0 Loss: 147.368",
        "Test set: Average loss: 0.0536, Accuracy: 9824/10000 (98%)",
        "val loss: 0.5",
        "Loss: 0.5",
        "step 1: install the packages",
        "Step 2: loading",
        "step 5/0",
        "step -3/10",
        "step 11/10",
        "step 0/-5",
        "epoch 5/3",
        "step 1.5/3",
        "save_steps=500, eval_steps=100, warmup_steps: 10",
        "epochs: 10",
        "lr 1e-3",
        "Num update steps per epoch = 16",
        "Gradient Accumulation steps = 1",
        "Batchsize: 32",
        "max_steps=-1",
        "best epoch 3",
        "early stopping after every 5 epochs",
        "took 12.5s/epoch",
        "progress",
        "[1, 2, 3]",
        "1/2",
        "37%",
        "NCCL INFO Channel 00/02 : 0 1",
        "NCCL INFO ring 0/1 [3/8]",
        "10/10 tests passed",
        "page 3 of 10",
        "v1/2",
        "memory 10/80 GB",
        "192.168.0.1/24",
        "score 3/10",
        "layers 12/24 frozen",
        "worker 2/4 [ready]",
        "step nan/10",
        "step 99999999999999999999/999999999999999999999",
        "\xff\xfe\x80 1/2",
        "\x1b[",
        "\x1b",
        "\x1b[31",
        "Running tokenizer [3/4]",
        "retry 2/5",
        "attempt [1/3] failed",
        "Node 1/2 joined",
        "num_updates 100, loss 0.5",
        "[40/500] loss: 0.5",
        "[3][40/500] loss 0.5",
        "Train: [2/300][630/1251] loss 0.5",
        "Total steps: 1024",
        "max_steps=1000",
        "bad epochs 2",
        "train loss 1200 0.5",
        "batch 40/500 loss: 0.5",
        "val 10/50 step 3/4",
        "Test: [10/50] loss 0.5",
        "Validation step 10/50",
        "Test Epoch: 3 [10/50] loss 0.5",
        "Validating:  20%|##        | 8/40 [00:00<00:01, 77.3it/s]",
        "val:  20%|##        | 8/40 [00:00<00:01, 77.3it/s, loss=0.5]",
        "Sanity Checking DataLoader 0:   0%|          | 0/2 [00:00<?, ?it/s]",
        "model.safetensors:  20%|##        | 1.0G/5.0G [00:00<00:01, 77.3MB/s]",
        " 20%|##        | 1.0M/5.0M [00:00<00:01, 77.3MB/s]",
        "Map:  20%|##        | 8/40 [00:00<00:01, 77.3 examples/s]",
        "Loading checkpoint shards:  50%|#####     | 1/2 [00:00<00:01,  1.3s/it]",
        "Tokenizing train set:  50%|#####     | 1/2 [00:00<00:01,  1.3s/it]",
        "Downloading train-images:  50%|#####     | 1/2 [00:00<00:01,  1.3s/it]",
        "frames:  50%|#####     | 1/2 [00:00<00:01,  1.3s/it]",
        "{\"time\":\"x\",\"event\":\"val\",\"epoch\":1,\"epochs\":2,\"global_step\":4,\"loss\":0.5}",
        ("{'eval_loss': '0.7616', 'eval_runtime': '0.0074', 'eval_steps_per_second': '1081', 'x': 'valid', "
         "'epoch': '1'}"),
        /* lists of what a script does */
        "Step 2/4: training",
        "Step 1/4",
        /* another kind of steps */
        "accumulation step 2/16",
        "Gradient step 3/16 loss 0.5",
        "denoising step 10/50",
        "inner iteration 3/40",
        "warmup step 10/100",
        /* in brackets behind brackets, counters in the plural, a download's sizes, what no form has */
        "steps: 10 loss: 0.5",
        "iters: 100, epoch: | loss: 0.5",
        "train: 45%|####5     | 12.5k/50.0k [00:00<00:01, 77.3it/s]",
        " 32/938 [>.............................] - ETA: 1s - loss: 0.3",
        "train: 45%|####5     | 5/50 [00:00<00:01, 77.3rows/s]",
        "train: 20it [00:00, 46.26it/s]",
        "training time: 4.63 s (steps 4.46 s, validation 0.17 s), 35 samples/s; start-up 0.08 s",
        /* bars with a word or a number that is no training's */
        "Task A:  20%|##        | 8/40 [00:00<00:01, 77.3it/s, loss=0.5]",
        "step 3/10:  20%|##        | 8/40 [00:00<00:01, 77.3it/s, loss=0.5]",
        "rank 0 Epoch 1/2:  20%|##        | 8/40 [00:00<00:01, 77.3it/s]",
        "3/8 models:  20%|##        | 8/40 [00:00<00:01, 77.3it/s]",
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
        struct progress_seen s;
        if (recognise_line(sv_from(lines[i]), &s))
            fail_msg("%s: step %lld/%lld, epoch %lld/%lld, loss %g", lines[i], (long long)s.step,
                     (long long)s.total_steps, (long long)s.epoch, (long long)s.total_epochs, s.loss);
    }
}

/* One run of several: nobody knows from then on how far all of them are. */
static void test_several(void **state)
{
    static const char *const lines[] = {
        "Model 1/5",           "=== Fold 1/5 ===",   "Fold 2",
        "fold1: epoch 3/3",    "seed 1/3 epoch 2/2", "Round 1/10 | client 3",
        "[fold 2] step 40/50", "Trial 3: epoch 1/3", "episode 3/100",
        "Phase 1/2",           "Stage: [1/2]",       "fold 1:  20%|##        | 8/40 [00:00<00:01, 77.3it/s]",
    };
    static const char *const others[] = {"seed 42",  "model has 124 parameters", "run 12",
                                         "folder 3", "level=info step 3/40",     "rank 0/8 step 3/40"};
    struct progress_seen s;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(lines); i++)
        if (!recognise_line(sv_from(lines[i]), &s) || !s.several)
            fail_msg("%s is of one run", lines[i]);
    for (size_t i = 0; i < ARRAY_LEN(others); i++)
        if (recognise_line(sv_from(others[i]), &s) && s.several)
            fail_msg("%s is of one run of several", others[i]);
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

/* Printed, not judged. */
static void test_cost(void **state)
{
    static char words[RECOGNISE_LINE_BYTES + 1], pairs[RECOGNISE_LINE_BYTES + 1];
    const char *const lines[] = {
        "epoch 1/3, batch    16/64 with loss: 0.3716",
        "Epoch 1/3:  20%|##        | 8/40 [00:00<00:01, 77.33it/s, loss=0.467]",
        "{'loss': '0.8307', 'grad_norm': '0.749', 'learning_rate': '4.688e-05', 'epoch': '0.25'}",
        "INFO 2026-11-24 20:12:13,123 nothing of the kind is said here, in 80 characters",
        "no digits at all stand in this line, which is what most lines of a log are like",
        words,
        pairs,
    };
    enum { TIMES = 2000 };
    struct progress_seen s;

    (void)state;
    for (size_t i = 0; i + 4 < sizeof(words); i += 4) {
        memcpy(words + i, i ? "a b " : "1 b ", 4);
        memcpy(pairs + i, "1/2,", 4);
    }
    for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
        struct timespec a, b;
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &a);
        for (int n = 0; n < TIMES; n++)
            (void)recognise_line(sv_from(lines[i]), &s);
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &b);
        print_message("%6.0f ns: %.90s\n",
                      ((double)(b.tv_sec - a.tv_sec) * 1e9 + (double)(b.tv_nsec - a.tv_nsec)) / TIMES,
                      lines[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines),
        cmocka_unit_test(test_nothing),
        cmocka_unit_test(test_several),
        cmocka_unit_test(test_hostile),
        cmocka_unit_test(test_stream_in_any_pieces),
        cmocka_unit_test(test_stream_drops_the_rest_of_a_long_line),
        cmocka_unit_test(test_cost),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
