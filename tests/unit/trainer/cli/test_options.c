/* test_options.c - the command line: taken, or refused with one clear line; never ignored. */
#include "test.h"

#include "common/cleanup.h"
#include "common/fsutil.h"
#include "trainer/cli/options.h"

#include <stdio.h>
#include <string.h>

static struct config preset(struct arena *a)
{
    struct config c;
    struct err err;

    assert_int_equal(config_load("mnist-cnn", a, &c, &err), 0);
    return c;
}

/* `line` cut at spaces. */
static int apply(char *line, struct config *c, struct err *err)
{
    char *argv[64];
    int argc = 0;

    for (char *word = strtok(line, " "); word && argc < 64; word = strtok(NULL, " "))
        argv[argc++] = word;
    return config_options(argc, argv, c, err);
}

static void takes_every_option(void **state)
{
    (void)state;
    cleanup_arena struct arena a = {0};
    struct config c = preset(&a);
    struct err err;
    char line[] =
        "--data d --dataset=fashion-mnist --epochs 3 --max-steps=7 --batch_size 16 --lr 5e-3 --seed 9 "
        "--sampler_seed 4 --eval_only --backend gloo --no_cuda --threads 2 --timeout 1.5 "
        "--log_interval 11 --log_format json --log_dir l --save_path m.pt --precision auto --precision bf16 "
        "--resume never "
        "--ckpt_dir c --save-steps 5 --save_seconds 0.5 --keep 2 "
        "--log-histograms 6 --bucket_mb 0.5";

    assert_int_equal(apply(line, &c, &err), 0);
    assert_string_equal(c.data_dir, "d");
    assert_int_equal(c.data.dataset, DATASET_FASHION_MNIST);
    assert_int_equal(c.epochs, 3);
    assert_int_equal(c.max_steps, 7);
    assert_int_equal(c.batch_size, 16);
    assert_true(c.optimizer.lr == 5e-3);
    assert_int_equal(c.seed, 9);
    assert_int_equal(c.sampler_seed, 4);
    assert_true(c.eval_only && c.no_cuda && !c.help);
    assert_int_equal(c.backend, COLLECTIVES_GLOO);
    assert_int_equal(c.threads, 2);
    assert_true(c.timeout_s == 1.5 && c.bucket_mb == 0.5);
    assert_int_equal(c.log_interval, 11);
    assert_int_equal(c.log_format, LOG_FORMAT_JSON);
    assert_string_equal(c.log_dir, "l");
    assert_string_equal(c.save_path, "m.pt");
    assert_int_equal(c.precision, 2);
    assert_string_equal(c.resume, "never");
    assert_string_equal(c.ckpt_dir, "c");
    assert_int_equal(c.save_steps, 5);
    assert_true(c.save_seconds == 0.5);
    assert_int_equal(c.keep, 2);
    assert_int_equal(c.log_histograms, 6);
}

static void the_last_of_two_counts(void **state)
{
    (void)state;
    static const struct {
        const char *line;
        int64_t epochs;
    } cases[] = {{"--epochs 3 --epochs=4", 4}, {"--epochs 3 --max_epochs 5", 5}};

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        cleanup_arena struct arena a = {0};
        struct config c = preset(&a);
        struct err err;
        assert_int_equal(apply(arena_strdup(&a, cases[i].line), &c, &err), 0);
        assert_int_equal(c.epochs, cases[i].epochs);
    }
}

/* The words that stand without a name are those the preset lists, wherever they stand. */
static void takes_arguments_without_names(void **state)
{
    (void)state;
    cleanup_arena struct arena a = {0};
    struct config c;
    struct err err;
    char line[] = "7 --batch_size 16 3";
    char more[] = "7 3 5";
    char bad[] = "7 x";

    assert_int_equal(config_load("fashion-mlp", &a, &c, &err), 0);
    assert_int_equal(c.epochs, 50);
    assert_int_equal(c.save_every, 10);
    assert_int_equal(apply(line, &c, &err), 0);
    assert_int_equal(c.epochs, 7);
    assert_int_equal(c.save_every, 3);
    assert_int_equal(c.batch_size, 16);
    assert_int_equal(apply(more, &c, &err), -1);
    assert_non_null(strstr(err.msg, "\"5\": expected an option"));
    assert_int_equal(apply(bad, &c, &err), -1);
    assert_non_null(strstr(err.msg, "--save_every: expected an integer 1..1000000, got \"x\""));
}

static void refuses(void **state)
{
    (void)state;
    static const struct {
        const char *line, *says;
    } cases[] = {
        {"--epoch 3", "--epoch: unknown option; did you mean --epochs? (trainer mnist-cnn --help)"},
        {"--batchsize=3", "--batchsize: unknown option; did you mean --batch_size?"},
        {"--learning_rate 3", "--learning_rate: unknown option (trainer mnist-cnn --help)"},
        {"--deterministic", "--deterministic: unknown option (trainer mnist-cnn --help)"},
        {"--n_layers 3", "--n_layers: unknown option (trainer mnist-cnn --help)"}, /* of a GPT-2 alone */
        {"--epochs", "--epochs: expected a value: --epochs=N"},
        {"--epochs 0", "--epochs: expected an integer 1..1000000, got \"0\""},
        {"--epochs=1.5", "--epochs: expected an integer 1..1000000, got \"1.5\""},
        {"--epochs=", "--epochs: expected an integer 1..1000000, got \"\""},
        {"--lr nan", "--lr: expected a number 0..1e+06, got \"nan\""},
        {"--lr=-1", "--lr: expected a number 0..1e+06, got \"-1\""},
        {"--timeout 0", "--timeout: expected a number 0.001..86400, got \"0\""},
        {"--bucket_mb -1", "--bucket_mb: expected a number 0..65536, got \"-1\""},
        {"--keep 0", "--keep: expected an integer 1..1000000, got \"0\""},
        {"--save_steps 0", "--save_steps: expected an integer 1..2147483647, got \"0\""},
        {"--save-seconds -1", "--save_seconds: expected a number 0..1e+07, got \"-1\""},
        {"--batch-size 65537", "--batch_size: expected an integer 1..65536, got \"65537\""},
        {"--no_cuda=1", "--no_cuda takes no value"},
        {"--data=", "--data: expected a path"},
        {"--dataset cifar", "--dataset: expected mnist or fashion-mnist, got \"cifar\""},
        {"--backend tcp", "--backend: expected gloo or nccl, got \"tcp\""},
        {"--backend mpi", "--backend: expected gloo or nccl, got \"mpi\""},
        {"--backend ncl", "got \"ncl\"; did you mean nccl?"},
        {"--dataset fashion_mnis", "; did you mean fashion-mnist?"},
        {"--log_format xml", "--log_format: expected text or json, got \"xml\""},
        {"extra", "\"extra\": expected an option"},
        {"-e 3", "-e: unknown option (trainer mnist-cnn --help)"},
        {"-- --epochs", "\"--epochs\": expected an option"},
        {"--precision f16", "--precision: expected f32, tf32, bf16 or auto, got \"f16\""},
        {"--precision BF16", "; did you mean bf16?"},
        {"--log_format jason", "got \"jason\"; did you mean json?"},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        cleanup_arena struct arena a = {0};
        struct config c = preset(&a);
        struct err err = {0};
        char line[256];
        snprintf(line, sizeof(line), "%s", cases[i].line);
        assert_int_equal(apply(line, &c, &err), -1);
        assert_int_equal(err.kind, ERR_INVALID);
        if (!strstr(err.msg, cases[i].says))
            fail_msg("case %zu: \"%s\" lacks \"%s\"", i, err.msg, cases[i].says);
    }
}

/* Every row has a help text, and rows with a range accept its ends. */
static void rows_are_complete(void **state)
{
    (void)state;
    for (const struct option_row *o = option_table; o->name; o++) {
        cleanup_arena struct arena a = {0};
        struct config c = preset(&a);
        struct err err;
        char line[128];
        if (o->needs & NEEDS_GPT2)
            assert_int_equal(config_load("gpt2", &a, &c, &err), 0);
        assert_non_null(o->help);
        if (o->set != option_integer)
            continue;
        snprintf(line, sizeof(line), "--%s=%lld", o->name, (long long)o->min);
        assert_int_equal(apply(line, &c, &err), 0);
        assert_int_equal(*(int64_t *)((char *)&c + o->offset), o->min);
        snprintf(line, sizeof(line), "--%s=%lld", o->name, (long long)o->max);
        assert_int_equal(apply(line, &c, &err), 0);
        assert_int_equal(*(int64_t *)((char *)&c + o->offset), o->max);
    }
}

static void a_gpt2_has_any_size(void **state)
{
    (void)state;
    cleanup_arena struct arena a = {0};
    struct config c;
    struct err err;

    assert_int_equal(config_load("gpt2", &a, &c, &err), 0);
    assert_int_equal(c.model.layers, 12 + 3);
    assert_int_equal(apply("--model=d48", &c, &err), 0);
    assert_int_equal(c.model.layers, 48 + 3);
    assert_string_equal(c.model.layer[48].name, "transformer.h.47");
    assert_int_equal(apply("--n_layer=2", &c, &err), 0);
    assert_int_equal(apply("--block_size=77", &c, &err), 0);
    assert_int_equal(c.model.layers, 2 + 3);
    assert_int_equal(c.model.input.rows, 77);
    assert_int_equal(c.data.rows, 77);
    assert_int_equal(apply("--model=d13", &c, &err), -1);
    assert_string_equal(err.msg, "--model: expected d12, d24, d36 or d48, got \"d13\"; did you mean d12?");
    c = preset(&a);
    assert_int_equal(apply("--n_layer=2", &c, &err), -1);
    assert_string_equal(err.msg, "--n_layer: the model is not a GPT-2 (model: {gpt2: ...})");
}

/* What a resumed run may change, and what not. */
static void where_a_run_ends_may_change(void **state)
{
    cleanup_arena struct arena a = {0};
    struct config c = preset(&a);
    struct config d = c;

    (void)state;
    d.epochs++;
    d.max_steps = 5;
    d.eval_only = true;
    assert_int_not_equal(config_fingerprint(&c), config_fingerprint(&d));
    assert_int_equal(config_resumable(&c), config_resumable(&d));
    d.batch_size++;
    assert_int_not_equal(config_resumable(&c), config_resumable(&d));
    d = c;
    c.schedule.type = d.schedule.type = SCHEDULE_COSINE; /* down to the end, wherever that is */
    d.epochs++;
    assert_int_not_equal(config_resumable(&c), config_resumable(&d));
    c.schedule.total = d.schedule.total = 7;
    assert_int_equal(config_resumable(&c), config_resumable(&d));
}

/* The words of `args:` in a job, quotes off; in `text`, which is cut up. */
static int args_of(char *text, char **args, int most)
{
    char *at = strstr(text, "          args:\n");
    int n = 0;

    assert_non_null(at);
    for (char *line = strtok(at, "\n");
         (line = strtok(NULL, "\n")) != NULL && strncmp(line, "          - ", 12) == 0;) {
        char *word = line + 12;
        if (*word == '"') {
            word++;
            word[strlen(word) - 1] = '\0';
        }
        assert_true(n < most);
        args[n++] = word;
    }
    return n;
}

/* The trainer accepts the command lines of the jobs under deploy/samples. */
static void samples_are_taken(void **state)
{
    (void)state;
    static const char *const names[] = {"mnist", "mnist-gpu", "gpt2", "gpt2-cpu"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        cleanup_arena struct arena a = {0};
        cleanup_buf struct buf text = BUF_INIT(1 << 16);
        struct config c;
        struct err err;
        char *args[64];
        assert_int_equal(
            fs_read(arena_printf(&a, TK_SOURCE_DIR "/deploy/samples/%s.yaml", names[i]), &text, &err), 0);
        int n = args_of(text.data, args, 64);
        assert_true(n >= 2);
        assert_string_equal(args[0], "trainer");
        if (config_load(args[1], &a, &c, &err) || config_options(n - 2, args + 2, &c, &err))
            fail_msg("%s: %s", names[i], err.msg);
    }
}

/* --recompute saves memory and changes no bit: a run that had too little continues with it. */
static void so_may_what_is_recomputed(void **state)
{
    cleanup_arena struct arena a = {0};
    struct config c, d;
    struct err err;

    (void)state;
    assert_int_equal(config_load("gpt2", &a, &c, &err), 0);
    d = c;
    assert_int_equal(apply("--recompute", &d, &err), 0);
    assert_int_equal(config_resumable(&c), config_resumable(&d));
    assert_int_equal(apply("--n_head=6", &d, &err), 0);
    assert_int_not_equal(config_resumable(&c), config_resumable(&d));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(takes_every_option),
        cmocka_unit_test(the_last_of_two_counts),
        cmocka_unit_test(takes_arguments_without_names),
        cmocka_unit_test(refuses),
        cmocka_unit_test(where_a_run_ends_may_change),
        cmocka_unit_test(so_may_what_is_recomputed),
        cmocka_unit_test(rows_are_complete),
        cmocka_unit_test(a_gpt2_has_any_size),
        cmocka_unit_test(samples_are_taken),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
