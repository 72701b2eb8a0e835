/* test_run.c - whole runs on a small data set of our own: what they print, write, save, and how they fail. */
#include "test.h"

#include "../a_run.h"
#include "common/contract.h"
#include "common/fsutil.h"
#include "trainer/model/optim.h"

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void a_preset_may_have_lines_of_its_own(void **state)
{
    struct fixture *f = *state;

    own_lines(f);
    f->cfg.data.split.train_items += f->cfg.data.split.val_items;
    f->cfg.data.split.val_items = 0;
    f->cfg.batch_size = 16;
    f->cfg.save_path = path_in(f, "m.pt");
    assert_int_equal(go(f), 0);
    const char *saved = arena_printf(&f->arena, "0 at %s\n", f->cfg.save_path);
    const char *saved_2 = arena_printf(&f->arena, "2 at %s\n", f->cfg.save_path);
    expect_lines(f->text,
                 (const char *const[]){"3 epochs of 16\n", "0: 0 of 4\n", "0 Loss: %\n", saved, "0: 1 of 4\n",
                                       "0 Loss: %\n", "0: 2 of 4\n", "0 Loss: %\n", saved_2, NULL});
    assert_int_equal(unlink(f->cfg.save_path), 0);
    f->cfg.epochs = 1;
    f->cfg.log_interval = 3; /* requested */
    assert_int_equal(go(f), 0);
    expect_lines(f->text, (const char *const[]){"1 epochs of 16\n", "0: 0 of 4\n",
                                                "epoch 1/1, batch     3/4 with loss: %\n", "0 Loss: %\n",
                                                saved, NULL});
    f->cfg.log_format = LOG_FORMAT_JSON;
    assert_int_equal(go(f), 0);
    assert_non_null(strstr(f->text, "\"event\":\"start\",\"model\":\"tiny\""));
    assert_non_null(strstr(f->text, "\"event\":\"epoch_end\",\"epoch\":1,\"epochs\":1,\"loss_sum\":"));
    assert_non_null(strstr(f->text, "\"event\":\"saved\",\"epoch\":1,\"epochs\":1}"));
    assert_null(strstr(f->text, "epochs of"));
}

/* Values as targets, drawn from a seed: a part of them to validate, no accuracy. The teacher's linear map is learnt. */
static void trains_on_values(void **state)
{
    struct fixture *f = *state;
    static const char model[] = "name: teacher\n"
                                "model:\n"
                                "  input: {features: 2}\n"
                                "  layers: [{type: linear, name: '', out: 1}]\n"
                                "loss: mse\n"
                                "optimizer: {type: sgd, lr: 0.1}\n"
                                "data: {format: synthetic, items: 64, outputs: 1, val_fraction: 0.25}\n"
                                "defaults: {epochs: 60, batch_size: 8, log_interval: 1000}\n";
    double loss = -1;

    assert_int_equal(make_of(state, model), 0);
    f->cfg.save_path = path_in(f, "m.pt");
    if (go(f))
        fail_msg("%s", f->err.msg);
    assert_non_null(strstr(f->text, "teacher: 3 parameters"));
    assert_null(strstr(f->text, "accuracy"));
    const char *last = strstr(f->text, "epoch 60/60 with val loss: ");
    assert_non_null(last);
    assert_int_equal(sscanf(last, "epoch 60/60 with val loss: %lf", &loss), 1);
    assert_true(loss < 1e-3);
    cleanup_buf struct buf weights = BUF_INIT(1 << 20);
    read_weights(f, &weights);
    assert_non_null(memmem(buf_str(&weights), weights.len, "weight", 6));
    assert_null(memmem(buf_str(&weights), weights.len, ".weight", 7));
    /* Data without a test part have nothing to evaluate alone. */
    f->cfg.eval_only = true;
    assert_int_equal(go(f), -1);
    assert_non_null(strstr(f->err.msg, "--eval_only: this data set has no test data"));
}

/* Numbers from a seed are no tokens: nobody has checked that the model's table has them. */
static void a_model_of_tokens_wants_tokens(void **state)
{
    struct fixture *f = *state;
    static const char model[] = "name: drawn\n"
                                "model:\n"
                                "  input: {tokens: 2}\n"
                                "  layers:\n"
                                "    - {type: embedding, name: e, vocab: 8, width: 4}\n"
                                "    - flatten\n"
                                "    - {type: linear, name: o, out: 2}\n"
                                "loss: cross_entropy\n"
                                "optimizer: {type: sgd, lr: 0.1}\n"
                                "data: {format: synthetic, items: 8, outputs: 2}\n";

    assert_int_equal(make_of(state, model), 0);
    assert_int_equal(go(f), -1);
    assert_int_equal(f->result.exit_code, EXIT_CODE_USAGE);
    assert_non_null(strstr(f->err.msg, "model.input: tokens, expected data: {format: tokens, ...}"));
}

static bool holds(const struct buf *b, const char *text)
{
    return memmem(buf_str(b), b->len, text, strlen(text)) != NULL;
}

static void writes_events_and_weights(void **state)
{
    struct fixture *f = *state;
    cleanup_buf struct buf events = BUF_INIT(1 << 20);
    cleanup_buf struct buf weights = BUF_INIT(1 << 20);
    static const char *const tags[] = {"train/loss",      "val/loss",      "val/accuracy",
                                       "test/loss",       "test/accuracy", "weights/conv.weight",
                                       "weights/out.bias"};

    f->cfg.log_histograms = 3;
    f->cfg.log_dir = path_in(f, "log");
    f->cfg.save_path = path_in(f, "m.pt");
    assert_int_equal(go(f), 0);
    assert_int_equal(f->result.warning.kind, ERR_NONE);
    cleanup_closedir DIR *dir = opendir(f->cfg.log_dir);
    assert_non_null(dir);
    for (struct dirent *e; (e = readdir(dir));)
        if (strstr(e->d_name, "tfevents"))
            assert_int_equal(
                fs_read(path_in(f, arena_printf(&f->arena, "log/%s", e->d_name)), &events, &f->err), 0);
    for (size_t i = 0; i < ARRAY_LEN(tags); i++)
        assert_true(holds(&events, tags[i]));
    read_weights(f, &weights);
    assert_true(weights.len > 1490 * 4);
    assert_true(holds(&weights, "conv.weight") && holds(&weights, "out.bias"));
    assert_false(holds(&weights, "module."));
}

/* A rate that becomes 0 shows when: from then on nothing moves. */
static void the_rate_follows_steps_or_epochs(void **state)
{
    struct fixture *f = *state;
    cleanup_buf struct buf before = BUF_INIT(1 << 20);
    cleanup_buf struct buf at = BUF_INIT(1 << 20);
    cleanup_buf struct buf behind = BUF_INIT(1 << 20);

    f->cfg.schedule = (struct schedule_spec){
        .type = SCHEDULE_MULTI_STEP, .milestones = 1, .milestone = {6}, .per_step = true};
    weights_after(f, 5, &before);
    weights_after(f, 6, &at);
    weights_after(f, 7, &behind);
    assert_memory_not_equal(before.data, at.data, at.len);
    assert_memory_equal(at.data, behind.data, at.len);
    f->cfg.schedule.per_step = false;
    f->cfg.schedule.milestone[0] = 1;
    weights_after(f, 3, &before);
    weights_after(f, 4, &at);
    weights_after(f, 7, &behind);
    assert_memory_not_equal(before.data, at.data, at.len);
    assert_memory_equal(at.data, behind.data, at.len);
}

static void max_steps_and_eval_only_end_early(void **state)
{
    struct fixture *f = *state;

    f->cfg.max_steps = 6;
    f->cfg.log_interval = 1;
    assert_int_equal(go(f), 0);
    assert_non_null(strstr(f->text, "epoch 2/2, batch     2/4"));
    assert_null(strstr(f->text, "batch     3/4 with loss: 0"));
    assert_null(strstr(f->text, "epoch 2/2 with val"));
    assert_non_null(strstr(f->text, "test loss: "));
    f->cfg.eval_only = true;
    assert_int_equal(go(f), 0);
    expect_lines(f->text,
                 (const char *const[]){"tiny: 1490 parameters", "test loss: %, test accuracy: %\n", NULL});
}

/* The next epoch has no step, and so no lines of its own. */
static void max_steps_may_be_whole_epochs(void **state)
{
    struct fixture *f = *state;

    f->cfg.max_steps = 4;
    f->cfg.lines.epoch_start = "begin {epoch}";
    f->cfg.lines.epoch_end = "end {epoch} {loss}";
    assert_int_equal(go(f), 0);
    assert_non_null(strstr(f->text, "begin 0\n"));
    assert_non_null(strstr(f->text, "epoch 1/2 with val"));
    assert_non_null(strstr(f->text, "test loss: "));
    assert_null(strstr(f->text, "begin 1\n"));
    assert_null(strstr(f->text, "end 1 "));
}

/* 4 steps are an epoch. Where --save_every writes nothing, or older weights, the end does. */
static void a_run_that_ends_early_leaves_its_weights(void **state)
{
    struct fixture *f = *state;
    cleanup_buf struct buf want = BUF_INIT(1 << 20), got = BUF_INIT(1 << 20);

    f->cfg.epochs = 4;
    for (int64_t steps = 1; steps <= 8; steps++) {
        f->cfg.save_every = 0;
        weights_after(f, steps, &want);
        f->cfg.save_every = 3;
        weights_after(f, steps, &got);
        assert_same(&got, &want);
    }
    f->cfg.eval_only = true;
    weights_after(f, 8, &got);
    /* A run that goes to its end keeps what --save_every wrote. */
    f->cfg.eval_only = false;
    f->cfg.max_steps = 0;
    f->cfg.save_every = 0;
    f->cfg.epochs = 1;
    weights_after(f, 0, &want);
    f->cfg.epochs = 2;
    f->cfg.save_every = 3;
    weights_after(f, 0, &got);
    assert_same(&got, &want);
}

static void a_signal_ends_the_run(void **state)
{
    struct fixture *f = *state;
    static const struct {
        int signal, code;
        const char *says;
    } cases[] = {{SIGTERM, 143, "stopped by SIGTERM after epoch 1, batch 1/4\n"},
                 {SIGINT, 130, "stopped by SIGINT after epoch 1, batch 1/4\n"}};

    f->cfg.save_path = path_in(f, "m.pt");
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        raise_next = cases[i].signal;
        assert_int_equal(go(f), 0);
        assert_int_equal(raise_next, 0);
        assert_int_equal(f->result.exit_code, cases[i].code);
        assert_non_null(strstr(f->text, cases[i].says));
        assert_int_equal(access(f->cfg.save_path, F_OK), -1);
    }
}

static void expect_failure(struct fixture *f, int code, const char *says)
{
    assert_int_equal(go(f), -1);
    if (f->result.exit_code != code || !strstr(f->err.msg, says))
        fail_msg("exit %d \"%s\", expected %d \"%s\"", f->result.exit_code, f->err.msg, code, says);
}

static void refuses_what_cannot_be_trained(void **state)
{
    struct fixture *f = *state;
    const struct config good = f->cfg;

    f->cfg.data_dir = path_in(f, "nowhere");
    f->cfg.no_download = true;
    expect_failure(f, 2, "nowhere");
    f->cfg.no_download = false; /* nobody answers */
    setenv("https_proxy", "http://127.0.0.1:1", 1);
    expect_failure(f, 2, "and cannot download them (--no_download: do not try)");
    unsetenv("https_proxy");
    f->cfg = good;
    f->cfg.data.split.train_items = 40;
    expect_failure(f, 2, "train_items 40 and val_items 16, but the data set has 64");
    f->cfg = good;
    f->cfg.model.input.rows = 9;
    expect_failure(f, 2, "model.input: 9x8x1, but the images are 8x8x1");
    f->cfg = good;
    f->cfg.model.layer[3].option[0] = 9;
    expect_failure(f, 2, "model: 9 outputs, expected at least one per class (10)");
    f->cfg = good;
    f->cfg.save_path = path_in(f, "none/m.pt");
    expect_failure(f, 2, "--save_path: ");
    f->cfg.save_path = path_in(f, "m.txt");
    expect_failure(f, 2, "expected a name that ends in .pt or .safetensors");
    f->cfg = good;
    f->cfg.log_dir = path_in(f, "train-images-idx3-ubyte/log");
    expect_failure(f, 1, "--log_dir: ");
    f->cfg = good;
    f->cfg.backend = COLLECTIVES_NCCL;
    expect_failure(f, 2, "(trainer-cuda), or --backend gloo"); /* none lies beside this program */
}

static void a_loss_that_is_not_finite_ends_the_run(void **state)
{
    struct fixture *f = *state;

    f->cfg.optimizer = optimizer_spec_of(&optimizer_sgd, 1e30);
    expect_failure(f, 1, "in epoch 1, batch ");
    assert_non_null(strstr(f->err.msg, "try a lower --lr"));
}

/* The last step can be the one that spoils the weights: no loss of a step shows it. */
static void nor_may_an_evaluation_be_not_finite(void **state)
{
    struct fixture *f = *state;

    f->cfg.optimizer = optimizer_spec_of(&optimizer_sgd, 1e30);
    f->cfg.batch_size = 48;
    f->cfg.epochs = 1;
    f->cfg.save_path = path_in(f, "m.pt");
    expect_failure(f, 1, "the validation loss is ");
    assert_non_null(strstr(f->err.msg, " behind step 1: try a lower --lr"));
    f->cfg.data.split.val_items = 0;
    f->cfg.data.split.train_items = 0;
    f->cfg.batch_size = 64;
    expect_failure(f, 1, "the test loss is ");
    assert_int_equal(access(f->cfg.save_path, F_OK), -1);
}

static FILE *bar;

static void say_why(const struct run_env *env, const struct run_result *result, const struct err *err)
{
    (void)env;
    (void)result;
    (void)err;
    fputs("why", bar);
}

static char *alone(const char *name)
{
    (void)name;
    return NULL;
}

static int64_t hurried_ms(void *ms)
{
    return *(int64_t *)ms += 1000;
}

/* The message that ends a run does not stand behind a bar. The rate of the second epoch is what spoils this one. */
static void a_failure_is_said_where_the_bar_was(void **state)
{
    struct fixture *f = *state;
    int64_t ms = 0;
    char *text;
    size_t len;
    FILE *out = fopen("/dev/null", "w");

    bar = open_memstream(&text, &len);
    struct run_env env = {.get = alone, .clock = clock_system(), .out = out, .bar = bar, .failed = say_why};
    env.clock.mono_ms = hurried_ms;
    env.clock.ctx = &ms;
    f->cfg.optimizer = optimizer_spec_of(&optimizer_sgd, f->cfg.optimizer.lr);
    f->cfg.schedule.gamma = 1e30;
    assert_int_equal(run(&f->cfg, &env, &f->result, &f->err), -1);
    assert_non_null(strstr(f->err.msg, "in epoch 2, batch "));
    fclose(bar);
    fclose(out);
    const char *end = strstr(text, " left\r\033[Kwhy");
    assert_non_null(end);
    assert_string_equal(end, " left\r\033[Kwhy");
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(trains_on_values),
        TEST(a_model_of_tokens_wants_tokens),
        TEST(a_preset_may_have_lines_of_its_own),
        TEST(writes_events_and_weights),
        TEST(the_rate_follows_steps_or_epochs),
        TEST(max_steps_and_eval_only_end_early),
        TEST(max_steps_may_be_whole_epochs),
        TEST(a_run_that_ends_early_leaves_its_weights),
        TEST(a_signal_ends_the_run),
        TEST(refuses_what_cannot_be_trained),
        TEST(a_loss_that_is_not_finite_ends_the_run),
        TEST(nor_may_an_evaluation_be_not_finite),
        TEST(a_failure_is_said_where_the_bar_was),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
