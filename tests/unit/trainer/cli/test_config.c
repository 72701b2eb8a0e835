/* test_config.c - presets and user models: what they become, and how wrong ones are refused. */
#include "test.h"

#include "common/buf.h"
#include "common/cleanup.h"
#include "trainer/cli/config.h"
#include "trainer/model/layer.h"
#include "trainer/model/optim.h"
#include "trainer/presets/presets.h"

#include <stdio.h>
#include <string.h>

static const char GOOD[] = "name: tiny\n"
                           "model:\n"
                           "  input: {rows: 8, cols: 8, channels: 1}\n"
                           "  layers:\n"
                           "    - {type: conv2d, name: c1, out: 4, kernel: 3}\n"
                           "    - relu\n"
                           "    - flatten\n"
                           "    - {type: linear, name: stack.0, out: 10}\n"
                           "loss: cross_entropy\n"
                           "optimizer: {type: sgd, lr: 0.5}\n"
                           "data: {format: idx, train_items: 3}\n";

static void the_preset_says_what_it_should(void **state)
{
    (void)state;
    cleanup_arena struct arena a = {0};
    struct config c;
    struct err err;

    assert_int_equal(config_load("mnist-cnn", &a, &c, &err), 0);
    assert_string_equal(c.name, "mnist-cnn");
    assert_int_equal(c.model.layers, 13);
    assert_string_equal(c.model.layer[3].ops->type, "conv2d");
    assert_string_equal(c.model.layer[3].name, "conv2");
    assert_int_equal(c.model.layer[3].option[0], 64);
    assert_string_equal(c.optimizer.ops->type, "adam");
    assert_true(c.optimizer.lr == 0.001 && c.optimizer.lr_times_world && c.optimizer.number[2] == 1e-8);
    assert_true(c.schedule.type == SCHEDULE_STEP && c.schedule.gamma == 0.7 && c.schedule.every == 1);
    assert_true(c.data.mean[0] == 0.5 && c.data.std[0] == 0.5);
    assert_int_equal(c.data.split.train_items, 48000);
    assert_int_equal(c.data.split.val_items, 12000);
    assert_int_equal(c.epochs, 10);
    assert_int_equal(c.batch_size, 32);
    assert_int_equal(c.seed, 1);
    assert_int_equal(c.log_interval_all_ranks, 500);
}

static void the_device_decides_for_gpt2(void **state)
{
    (void)state;
    cleanup_arena struct arena a = {0};
    struct config c;
    struct err err;

    assert_int_equal(config_load("gpt2", &a, &c, &err), 0);
    assert_int_equal(c.batch_size, 0);
    assert_int_equal(c.precision, CONFIG_PRECISION_AUTO);
    assert_int_equal(config_load("gpt2-bytes", &a, &c, &err), 0);
    assert_true(c.batch_size > 0);
    assert_int_equal(c.precision, 0);
}

static void every_preset_is_read(void **state)
{
    (void)state;

    assert_non_null(presets[0].name);
    for (size_t i = 0; presets[i].name; i++) {
        cleanup_arena struct arena a = {0};
        struct config c;
        struct err err;
        assert_int_equal(config_load(presets[i].name, &a, &c, &err), 0);
        assert_string_equal(c.name, presets[i].name);
        assert_int_equal(strlen(presets[i].text), presets[i].len);
        assert_string_equal(c.source, presets[i].text);
    }
}

static void a_users_model_has_defaults(void **state)
{
    (void)state;
    cleanup_arena struct arena a = {0};
    struct config c;
    struct err err = {0};

    assert_int_equal(config_decode("t.yaml", GOOD, strlen(GOOD), &a, &c, &err), 0);
    assert_int_equal(c.epochs, 1);
    assert_int_equal(c.schedule.type, SCHEDULE_CONSTANT);
    assert_false(c.optimizer.lr_times_world);
    assert_true(c.data.mean[0] == 0 && c.data.std[0] == 1);
    assert_int_equal(c.data.split.val_items, 0);
    assert_string_equal(c.data_dir, "./data");
    assert_true(c.timeout_s == 600 && c.bucket_mb == 25);
}

/* `text` with `from` replaced by `to`. */
static void replace(const char *text, const char *from, const char *to, struct buf *out)
{
    const char *at = strstr(text, from);
    struct err err;

    assert_non_null(at);
    buf_clear(out);
    assert_int_equal(buf_printf(out, &err, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from)), 0);
}

static void mutate(const char *from, const char *to, struct buf *out)
{
    replace(GOOD, from, to, out);
}

#define X67 "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"

static void refuses_with_place_and_expectation(void **state)
{
    (void)state;
    static const struct {
        const char *from, *to, *says;
    } cases[] = {
        {"name: tiny", "title: tiny", "t.yaml:1: title: unknown key, expected one of: name, about"},
        {"name: tiny\n", "", "t.yaml:1: name: is required"},
        {"name: tiny", "name: 'a \"b'", "t.yaml:1: name: expected letters, digits"},
        {"name: c1", "name: c-1", "model.layers[0].name: expected letters, digits"},
        {"rows: 8", "rows: 0", "t.yaml:3: model.input.rows: expected an integer 1..4096, got \"0\""},
        {"rows: 8, ", "", "t.yaml:3: model.input.rows: is required"},
        {"conv2d", "conv3d", "t.yaml:5: model.layers[0].type: expected one of: conv2d, flatten, linear"},
        {"kernel: 3", "kernel: 65",
         "t.yaml:5: model.layers[0].kernel: expected an integer 1..64, got \"65\""},
        {", kernel: 3", "", "t.yaml:5: model.layers[0].kernel: is required"},
        {"kernel: 3", "kernel: 3, size: 2",
         "t.yaml:5: model.layers[0].size: unknown key, expected one of: type, name, out, kernel"},
        {"name: c1, ", "", "t.yaml:5: model.layers[0].name: is required"},
        {"name: c1", "name: 'a b'", "model.layers[0].name: expected letters, digits"},
        {"name: c1", "name: .c", "model.layers[0].name: expected letters, digits"},
        {"stack.0", "c1", "t.yaml:8: model.layers[3].name: \"c1\" already names layer 0"},
        {"- relu", "- rely", "t.yaml:6: model.layers[1]: expected one of"},
        {"- relu", "- ~", "t.yaml:6: model.layers[1]: expected one of: conv2d"},
        {"- relu", "- {name: x}", "t.yaml:6: model.layers[1].type: is required"},
        {"- relu", "- {type: relu, name: x}", "t.yaml:6: model.layers[1].name: unknown key"},
        {"cross_entropy", "l1", "t.yaml:9: loss: expected one of: cross_entropy, mse; got \"l1\""},
        {"cross_entropy", "{type: mse, label_smoothing: 0}",
         "t.yaml:9: loss.label_smoothing: unknown key, expected one of: type"},
        {"cross_entropy", "{type: cross_entropy, label_smoothing: 1.5}",
         "t.yaml:9: loss.label_smoothing: expected a number 0..1, got \"1.5\""},
        {"cross_entropy", "[mse]", "t.yaml:9: loss: expected one of: cross_entropy, mse; got a list"},
        {"lr: 0.5", "lr: 0.5, nesterov: true",
         "t.yaml:10: optimizer.nesterov: expected a momentum above 0 and no dampening beside it"},
        {"lr: 0.5", "lr: 0.5, momentum: 0.9, dampening: 0.1, nesterov: true",
         "optimizer.nesterov: expected a momentum"},
        {"lr: 0.5", "lr: 0.5, decay: biases",
         "t.yaml:10: optimizer.decay: expected one of: all, matrices; got \"biases\""},
        {"data:", "schedule: {type: multi_step, gamma: 0.1}\ndata:", "schedule.milestones: is required"},
        {"data:", "schedule: {type: multi_step, gamma: 0.1, milestones: [3, 3]}\ndata:",
         "t.yaml:11: schedule.milestones[1]: expected an integer 4..1000000000, got \"3\""},
        {"data:", "schedule: {type: multi_step, gamma: 0.1, milestones: []}\ndata:",
         "t.yaml:11: schedule.milestones: expected a list of 1..32 items, got 0"},
        {"data:", "schedule: {type: cosine, gamma: 0.1}\ndata:",
         "t.yaml:11: schedule.gamma: unknown key, expected one of: type, per, warmup, warmup_from, "
         "warmup_full, total, min_lr"},
        {"data:", "schedule: {per: batch}\ndata:",
         "schedule.per: expected one of: epoch, step; got \"batch\""},
        {"data:", "schedule: {warmup: 3, warmup_full: first}\ndata:",
         "t.yaml:11: schedule.warmup_full: expected one of: after, last; got \"first\""},
        {"data:", "schedule: {warmup: 3, warmup_from: 0}\ndata:",
         "t.yaml:11: schedule.warmup_from: expected a number 1e-09..1, got \"0\""},
        {"data:", "schedule: {warmup: -1}\ndata:", "schedule.warmup: expected an integer 0.."},
        {"loss: cross_entropy\n", "", "loss: is required"},
        {"lr: 0.5", "lr: -1", "t.yaml:10: optimizer.lr: expected a number 0..1e+06, got \"-1\""},
        {"lr: 0.5", "lr: 0.5, beta1: 0.9",
         "t.yaml:10: optimizer.beta1: unknown key, expected one of: type, lr"},
        {", lr: 0.5", "", "t.yaml:10: optimizer.lr: is required"},
        {"lr: 0.5", "lr: 0.5, lr_times_world: yes",
         "optimizer.lr_times_world: expected true or false, got \"yes\""},
        {"data:", "schedule: {type: step}\ndata:", "t.yaml:11: schedule.gamma: is required"},
        {"data:", "schedule: {type: constant, gamma: 1}\ndata:", "t.yaml:11: schedule.gamma: unknown key"},
        {"data:", "defaults: {epochs: 0}\ndata:", "t.yaml:11: defaults.epochs: expected an integer 1.."},
        {"data:", "defaults: {epoch: 1}\ndata:", "t.yaml:11: defaults.epoch: unknown key"},
        {"format: idx", "format: tfrecord",
         "t.yaml:11: data.format: expected one of: idx, synthetic, tokens; got \"tfrecord\""},
        {"format: idx", "format: idx, train: x", "t.yaml:11: data.train_targets: is required"},
        {"format: idx", "format: idx, test: x, test_targets: y", "t.yaml:11: data.train: is required"},
        {"format: idx", "format: idx, items: 3", "t.yaml:11: data.items: unknown key, expected one of"},
        {"format: idx", "format: tokens, train: x", "tokens need a model of sequences"},
        {"format: idx", "format: tokens", "t.yaml:11: data.train: is required"},
        {"format: idx, ", "format: tokens, train: x, val: y, val_items: 3, ", "data.val: replaces val_items"},
        {"format: idx", "format: synthetic, outputs: 3", "t.yaml:11: data.items: is required"},
        {"format: idx", "format: synthetic, items: 3, outputs: 3, targets: uniform",
         "t.yaml:11: data.targets: expected teacher, as this loss takes labels"},
        {"train_items: 3", "train_items: 3, val_fraction: 0.5", "t.yaml:11: data.val_fraction: stands for"},
        {"train_items: 3", "mean: [0, x]", "t.yaml:11: data.mean[1]: expected a number"},
        {"train_items: 3", "mean: [~, 0.5]", "t.yaml:11: data.mean[0]: expected a number"},
        {"train_items: 3", "std: [0.5, null]", "t.yaml:11: data.std[1]: expected a number"},
        {"train_items: 3", "mean: [0, 1, 2], std: [1, 1]", "t.yaml:11: data.std: expected 3 numbers"},
        {"loss: cross_entropy", "loss: mse", "data: idx files hold labels"},
        {"rows: 8, ", "features: 8, ", "t.yaml:3: model.input.cols: unknown key, expected one of: features"},
        {"data:", "print: {epoch: x}\ndata:",
         "t.yaml:11: print.epoch: unknown key; did you mean epoch_start? expected one of: start"},
        {"data:", "print: {start: '" X67 X67 X67 "'}\ndata:",
         "print.start: expected a text of 1..200 characters, got 201"},
        {"data:", "print: {start: 'a {b}'}\ndata:",
         "t.yaml:11: print.start: \"{b}\": expected one of {rank}"},
        {"data:", "arguments: [epochs, show]\ndata:",
         "t.yaml:11: arguments[1]: expected the name of an option that takes a value, got \"show\""},
        {"data:", "arguments: [epochs, seed, lr, data, threads]\ndata:",
         "t.yaml:11: arguments: expected a list of 0..4 items, got 5"},
        {"data:", "test: maybe\ndata:", "t.yaml:11: test: expected true or false, got \"maybe\""},
        {"data:", "defaults: {save_every: 0}\ndata:",
         "t.yaml:11: defaults.save_every: expected an integer 1.."},
        {"loss:", "  stages: []\nloss:", "t.yaml:9: model.stages: expected a list of 1..64 items, got 0"},
        {"loss:", "  stages: [stack.0]\nloss:",
         "t.yaml:9: model.stages[0]: expected the name of the model's first named layer, got \"stack.0\""},
        {"loss:", "  stages: [c1, c1]\nloss:",
         "t.yaml:9: model.stages[1]: expected the name of a layer behind the last stage's first, got \"c1\""},
        {"loss:", "  stages: [c1, '']\nloss:", "model.stages[1]: expected the name of a layer behind"},
        {"loss:", "  stages: [c1, stack.0, stack.0]\nloss:", "model.stages[2]: expected the name of a layer"},
        {"loss:", "  stages: [[c1]]\nloss:", "model.stages[0]: expected the name of the model's first"},
        {"data:", "defaults: {micro_batches: 0}\ndata:",
         "t.yaml:11: defaults.micro_batches: expected an integer 1..1024, got \"0\""},
        {"data:", "defaults: {nprocs: 0}\ndata:", "t.yaml:11: defaults.nprocs: expected an integer 1..1024"},
        {"data:", "defaults: {nprocs: all}\ndata:",
         "t.yaml:11: defaults.nprocs: expected an integer 1..1024"},
        {"data:", "defaults: {batch_size: auto}\ndata:",
         "t.yaml:11: defaults: batch_size: auto: expected total_batch_tokens beside it"},
        {"data:", "defaults: {batch_size: all}\ndata:",
         "t.yaml:11: defaults.batch_size: expected an integer 1..65536"},
        {"data:", "defaults: {precision: f16}\ndata:",
         "t.yaml:11: defaults.precision: expected one of: f32, tf32, bf16, auto"},
        {"train_items: 3", "train_items: x", "t.yaml:11: data.train_items: expected an integer"},
        {"train_items: 3", "std: 0", "t.yaml:11: data.std: expected a number"},
    };
    cleanup_buf struct buf text = BUF_INIT(8192);

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        cleanup_arena struct arena a = {0};
        struct config c = {.epochs = 77};
        struct err err = {0};
        mutate(cases[i].from, cases[i].to, &text);
        assert_int_equal(config_decode("t.yaml", buf_str(&text), text.len, &a, &c, &err), -1);
        assert_int_equal(err.kind, ERR_INVALID);
        assert_int_equal(c.epochs, 77);
        if (!strstr(err.msg, cases[i].says))
            fail_msg("case %zu: \"%s\" lacks \"%s\"", i, err.msg, cases[i].says);
    }
}

static void decode_with(const char *schedule, struct arena *a, struct config *c)
{
    cleanup_buf struct buf text = BUF_INIT(8192);
    char line[128];
    struct err err;

    snprintf(line, sizeof(line), "schedule: {type: cosine, per: step, %s}\ndata:", schedule);
    mutate("data:", line, &text);
    assert_int_equal(config_decode("t.yaml", buf_str(&text), text.len, a, c, &err), 0);
}

static void a_warm_up_follows_either_rule(void **state)
{
    (void)state;
    cleanup_arena struct arena a = {0};
    struct config torch;
    struct config gpt;

    decode_with("warmup: 715", &a, &torch);
    assert_int_equal(torch.schedule.warmup, 715);
    assert_false(torch.schedule.warmup_last_full);
    assert_true(torch.schedule.warmup_from == 1.0 / 3);
    decode_with("warmup: 715, warmup_full: last", &a, &gpt);
    assert_true(gpt.schedule.warmup_last_full);
    assert_true(gpt.schedule.warmup_from == 0);
    assert_int_not_equal(config_fingerprint(&torch), config_fingerprint(&gpt));
    torch.schedule.warmup_from = 0;
    assert_int_not_equal(config_fingerprint(&torch), config_fingerprint(&gpt));
    decode_with("warmup: 715, warmup_full: last, warmup_from: 0.5", &a, &gpt);
    assert_true(gpt.schedule.warmup_from == 0.5);
}

static void stages_begin_with_named_layers(void **state)
{
    (void)state;
    cleanup_buf struct buf text = BUF_INIT(8192);
    cleanup_arena struct arena a = {0};
    struct config whole;
    struct config c;
    struct err err;

    mutate("loss:", "  stages: [c1, stack.0]\nloss:", &text);
    assert_int_equal(config_decode("t.yaml", buf_str(&text), text.len, &a, &c, &err), 0);
    assert_int_equal(c.model.stages, 2);
    assert_int_equal(c.model.stage_first[0], 0);
    assert_int_equal(c.model.stage_first[1], 3);
    assert_int_equal(c.micro_batches, 1);
    assert_int_equal(config_decode("t.yaml", GOOD, strlen(GOOD), &a, &whole, &err), 0);
    assert_int_equal(whole.model.stages, 0);
    assert_int_not_equal(config_fingerprint(&whole), config_fingerprint(&c));
    /* Layers without a name at the front belong to the first stage. */
    cleanup_buf struct buf more = BUF_INIT(8192);
    mutate("    - {type: conv2d, name: c1, out: 4, kernel: 3}\n    - relu\n", "", &text);
    replace(buf_str(&text), "loss:", "  stages: [stack.0]\ndefaults: {micro_batches: 4}\nloss:", &more);
    assert_int_equal(config_decode("t.yaml", buf_str(&more), more.len, &a, &c, &err), 0);
    assert_int_equal(c.model.stages, 1);
    assert_int_equal(c.model.stage_first[0], 0);
    assert_int_equal(c.micro_batches, 4);
}

static void finds_names_and_paths(void **state)
{
    (void)state;
    cleanup_arena struct arena a = {0};
    struct config c;
    struct err err;
    char path[] = "/tmp/test_config_XXXXXX.yaml";
    int fd = mkstemps(path, 5);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, GOOD, strlen(GOOD)), strlen(GOOD));
    close(fd);
    assert_int_equal(config_load(path, &a, &c, &err), 0);
    assert_string_equal(c.name, "tiny");
    unlink(path);
    assert_int_equal(config_load(path, &a, &c, &err), -1);
    assert_int_equal(err.kind, ERR_NOT_FOUND);
    assert_int_equal(config_load("mnist", &a, &c, &err), -1);
    assert_non_null(strstr(err.msg, "\"mnist\": no such preset; did you mean mnist-cnn? (there are: "));
    assert_non_null(strstr(err.msg, "mnist-cnn"));
}

/* Options that decide weights, or when a run ends, distinguish two configurations; a path does not. */
static void fingerprints_tell_configurations_apart(void **state)
{
    (void)state;
    cleanup_arena struct arena a = {0};
    struct config c;
    struct config d;
    struct err err;
#define AT(field) offsetof(struct config, field)
    static const size_t fields[] = {AT(epochs),
                                    AT(batch_size),
                                    AT(bucket_mb),
                                    AT(model.layer[0].option[0]),
                                    AT(model.layer[0].name),
                                    AT(loss.type),
                                    AT(optimizer.lr),
                                    AT(optimizer.number[1]),
                                    AT(schedule.gamma),
                                    AT(schedule.milestone[0]),
                                    AT(data.option[1]),
                                    AT(data.mean[0]),
                                    AT(data.std[0]),
                                    AT(data.scale)};

    assert_int_equal(config_load("mnist-cnn", &a, &c, &err), 0);
    d = c;
    d.data_dir = "/elsewhere";
    d.log_dir = "log";
    assert_true(config_fingerprint(&c) == config_fingerprint(&d));
    for (size_t i = 0; i < ARRAY_LEN(fields); i++) {
        d = c;
        *((char *)&d + fields[i]) ^= 1;
        if (config_fingerprint(&c) == config_fingerprint(&d))
            fail_msg("field %zu does not count", i);
    }
    d = c;
    d.optimizer.ops = &optimizer_adamw;
    assert_false(config_fingerprint(&c) == config_fingerprint(&d));
    d = c;
    d.data.format = &format_synthetic;
    assert_false(config_fingerprint(&c) == config_fingerprint(&d));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_preset_says_what_it_should),
        cmocka_unit_test(the_device_decides_for_gpt2),
        cmocka_unit_test(every_preset_is_read),
        cmocka_unit_test(a_users_model_has_defaults),
        cmocka_unit_test(refuses_with_place_and_expectation),
        cmocka_unit_test(a_warm_up_follows_either_rule),
        cmocka_unit_test(stages_begin_with_named_layers),
        cmocka_unit_test(finds_names_and_paths),
        cmocka_unit_test(fingerprints_tell_configurations_apart),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
