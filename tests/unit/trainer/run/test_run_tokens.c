/* test_run_tokens.c - whole runs of a small GPT-2 on files of tokens: when they validate, what they report, how they continue. */
#include "shard.h"
#include "test.h"

#include "../a_run.h"
#include "common/fsutil.h"
#include "trainer/data/tokens.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* 640 bytes are 39 windows of 16: 10 steps of 4. */
enum { TRAIN_BYTES = 640, VAL_BYTES = 200 };

static const char MODEL[] = "name: tiny\n"
                            "model: {gpt2: {vocab: 256, block_size: 16, n_layer: 1, n_head: 2, n_embd: 16}}\n"
                            "loss: cross_entropy\n"
                            "optimizer: {type: adamw, lr: 0.01, clip: 1.0}\n"
                            "data: {format: tokens, train: train*, val: val*}\n"
                            "defaults: {epochs: 1, batch_size: 4, log_interval: 5}\n";

/* Each look finds it a little later: rates do not depend on how quick the machine is. */
static int64_t ticking_ms(void *ctx)
{
    static int64_t now = 1000;

    (void)ctx;
    return now += 7;
}

static int setup(void **state)
{
    char text[TRAIN_BYTES];

    make_of(state, MODEL);
    a_run_mono_ms = ticking_ms;
    for (int i = 0; i < TRAIN_BYTES; i++)
        text[i] = "a small text, of few words. "[i % 28];
    put_file(*state, "train.txt", text, TRAIN_BYTES);
    put_file(*state, "val.txt", text + 3, VAL_BYTES);
    return 0;
}

static int count(const char *text, const char *what)
{
    int n = 0;

    for (const char *at = text; (at = strstr(at, what)) != NULL; at++)
        n++;
    return n;
}

static void expect(const struct fixture *f, const char *what, int times)
{
    if (count(f->text, what) != times)
        fail_msg("%d times \"%s\", expected %d:\n%s", count(f->text, what), what, times, f->text);
}

static void validates_by_steps(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(go(f), 0);
    expect(f, "val loss", 1);
    expect(f, "epoch 1/1 with val loss: ", 1);
    expect(f, "test loss", 0);
    f->cfg.val_every = 3;
    f->cfg.epochs = 2;
    f->cfg.max_steps = 17;
    assert_int_equal(go(f), 0);
    /* 3, 6, 9, the epoch's end; 12, 15, and the last. */
    expect(f, "val loss", 7);
    expect(f, "epoch 1/2, batch     3/10 with val loss: ", 1);
    expect(f, "epoch 1/2 with val loss: ", 1);
    expect(f, "epoch 2/2, batch     2/10 with val loss: ", 1);
    expect(f, "epoch 2/2, batch     7/10 with val loss: ", 1);
    f->cfg.eval_only = true;
    assert_int_equal(go(f), 0);
    expect(f, "test loss: ", 1);
}

static double first_val(const struct fixture *f)
{
    const char *at = strstr(f->text, "val loss: ");

    assert_non_null(at);
    return strtod(at + 10, NULL);
}

/* A part of the data validates; with as many steps as there are samples, all. */
static void validates_on_a_part(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(go(f), 0);
    double all = first_val(f);
    f->cfg.val_steps = 1;
    assert_int_equal(go(f), 0);
    assert_true(first_val(f) != all);
    f->cfg.val_steps = 100;
    assert_int_equal(go(f), 0);
    assert_true(first_val(f) == all);
}

static void tells_its_speed(void **state)
{
    struct fixture *f = *state;
    cleanup_buf struct buf events = BUF_INIT(1 << 20);
    char command[256];
    static const char *const tags[] = {"train/loss", "val/loss", "lr", "grad_norm", "tokens_per_second"};

    f->cfg.log_dir = path_in(f, "log");
    f->cfg.log_format = LOG_FORMAT_JSON;
    assert_int_equal(go(f), 0);
    expect(f, "\"event\":\"speed\",\"global_step\":10,\"lr\":0.01,\"grad_norm\":", 1);
    snprintf(command, sizeof(command), "cat %s/log/*tfevents* > %s/events", f->dir, f->dir);
    assert_int_equal(system(command), 0);
    assert_int_equal(fs_read(path_in(f, "events"), &events, &f->err), 0);
    for (size_t i = 0; i < sizeof(tags) / sizeof(tags[0]); i++)
        if (!memmem(events.data, events.len, tags[i], strlen(tags[i])))
            fail_msg("no \"%s\" in the events", tags[i]);
}

/* In the middle of an epoch, in the middle of the files: the bits of a run that was not interrupted. Validating and asking more
 * often than the run before does not keep it from going on. */
static void goes_on_where_it_was(void **state)
{
    struct fixture *f = *state;
    cleanup_buf struct buf whole = BUF_INIT(1 << 20);
    cleanup_buf struct buf parts = BUF_INIT(1 << 20);

    weights_after(f, 0, &whole);
    f->cfg.save_steps = 6;
    f->cfg.max_steps = 6;
    assert_int_equal(go(f), 0);
    f->cfg.val_every = 2;
    f->cfg.resume = f->cfg.ckpt_dir;
    weights_after(f, 0, &parts);
    expect(f, "resumed from", 1);
    expect(f, " of another configuration", 0);
    assert_same(&parts, &whole);
}

/* Other files than the checkpoint was of: it continues, and reports what that means. A run that is not in the middle of an epoch has
 * nothing to report. */
static void data_that_are_others_by_now(void **state)
{
    struct fixture *f = *state;
    char text[4 * TRAIN_BYTES];

    memset(text, 'e', sizeof(text));
    f->cfg.save_steps = 6;
    f->cfg.max_steps = 6;
    f->cfg.epochs = 2;
    assert_int_equal(go(f), 0);
    f->cfg.resume = f->cfg.ckpt_dir;
    f->cfg.max_steps = 7;
    assert_int_equal(go(f), 0);
    expect(f, "the training data", 0);
    put_file(f, "train2.txt", text, TRAIN_BYTES); /* 39 windows more */
    assert_int_equal(go(f), 0);
    expect(f,
           "warning: the training data have 78 samples, and had 39 when the checkpoint was written: what is "
           "left of "
           "epoch 1 is drawn from those there are now",
           1);
    expect(f, "epoch 1/2, batch    10/20 with loss: ", 0);
    f->cfg.max_steps = 10;
    assert_int_equal(go(f), 0);
    expect(f, "epoch 1/2, batch    10/20 with loss: ", 1); /* 24 places taken, 54 left: 14 steps behind 6 */
    put_file(f, "train.txt", text, 17);
    put_file(f, "train2.txt", text, 17); /* two windows: fewer than were taken */
    f->cfg.max_steps = 12;
    assert_int_equal(go(f), 0);
    expect(f, "the training data have 2 samples, and had 39", 1);
    expect(f, "epoch 2/2", 1);
}

static void refuse(struct fixture *f, int code, const char *want)
{
    assert_int_equal(go(f), -1);
    if (f->result.exit_code != code || !strstr(f->err.msg, want))
        fail_msg("%d \"%s\", expected %d \"%s\"", f->result.exit_code, f->err.msg, code, want);
}

static void tokens_that_cannot_be(void **state)
{
    struct fixture *f = *state;
    uint8_t shard[TOKENS_SHARD_HEADER + 2 * 40] = {0};

    f->cfg.data.train = "none*";
    refuse(f, 2, "none*: no such file");
    shard_header(40, shard);
    shard[sizeof(shard) - 1] = 1; /* token 39 is 256 */
    put_file(f, "shard.bin", shard, sizeof(shard));
    f->cfg.data.train = "shard.bin";
    f->cfg.data.in_order = true;
    assert_int_equal(go(f), 0); /* 39 is behind the windows: 2 of 16 and one */
    shard[TOKENS_SHARD_HEADER + 2 * 32 + 1] = 1;
    put_file(f, "shard.bin", shard, sizeof(shard));
    refuse(f, 1, "shard.bin: token 32: 256, expected 0..255");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(validates_by_steps, setup, unmake),
        cmocka_unit_test_setup_teardown(validates_on_a_part, setup, unmake),
        cmocka_unit_test_setup_teardown(tells_its_speed, setup, unmake),
        cmocka_unit_test_setup_teardown(goes_on_where_it_was, setup, unmake),
        cmocka_unit_test_setup_teardown(data_that_are_others_by_now, setup, unmake),
        cmocka_unit_test_setup_teardown(tokens_that_cannot_be, setup, unmake),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
