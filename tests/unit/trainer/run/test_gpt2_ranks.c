/* test_gpt2_ranks.c - GPT-2 on several ranks: the weights of one that takes as many micro-batches, and of runs that stop and
 * go on, bit by bit. */
#include "test.h"

#include "../launched.h"
#include "common/buf.h"
#include "common/contract.h"
#include "common/fsutil.h"
#include "trainer/run/run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define GOLDEN TK_SOURCE_DIR "/tests/golden/torch"

/* 12 tokens a window, 40 windows: in order, so that ranks together take what one takes alone. */
static const char MODEL[] =
    "name: small\n"
    "model:\n"
    "  gpt2: {vocab: 31, block_size: 12, n_layer: 2, n_head: 2, n_embd: 16}\n"
    "loss: cross_entropy\n"
    "optimizer: {type: adamw, lr: 0.006, beta1: 0.9, beta2: 0.95, weight_decay: 0.1, decay: matrices, clip: "
    "1.0}\n"
    "schedule: {type: cosine, per: step, warmup: 3, warmup_full: last, min_lr: 0.0006}\n"
    "data: {format: tokens, train: gpt2.bin, shuffle: false}\n"
    "defaults: {epochs: 2, batch_size: 1, total_batch_tokens: 48, seed: 1337}\n";

static char *environment(const char *name)
{
    if (strcmp(name, CONTRACT_ENV_JOB_UID) == 0)
        return (char *)"gpt2";
    return launched.world == 1 ? NULL : launched_get(name);
}

struct fixture {
    char dir[64];
    struct arena arena;
    struct config cfg;
};

static int make(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    struct err err;

    snprintf(f->dir, sizeof(f->dir), "/tmp/tk-gpt2-XXXXXX");
    assert_non_null(mkdtemp(f->dir));
    if (config_decode("small.yaml", MODEL, sizeof(MODEL) - 1, &f->arena, &f->cfg, &err))
        fail_msg("%s", err.msg);
    f->cfg.data_dir = GOLDEN;
    f->cfg.timeout_s = 60;
    f->cfg.save_seconds = 0;
    f->cfg.resume = "never";
    *state = f;
    return 0;
}

static int unmake(void **state)
{
    struct fixture *f = *state;

    (void)!system(arena_printf(&f->arena, "rm -rf %s", f->dir));
    arena_release(&f->arena);
    free(f);
    return 0;
}

static const char *path_in(struct fixture *f, const char *name)
{
    return arena_printf(&f->arena, "%s/%s", f->dir, name);
}

static int one_rank(void *ctx, int rank)
{
    struct fixture *f = ctx;
    const struct config *cfg = &f->cfg;
    cleanup_fclose FILE *out = fopen(rank ? "/dev/null" : path_in(f, "out"), "w");
    struct run_env env = {.get = environment, .clock = clock_system(), .out = out};
    struct run_result result;
    struct err err = {0};

    env.started_ms = env.clock.mono_ms(env.clock.ctx);
    if (run(cfg, &env, &result, &err))
        fprintf(stderr, "rank %d: %s\n", rank, err.msg);
    return result.exit_code;
}

/* The weights that `world` ranks end with. */
static struct buf weights_of(struct fixture *f, int world)
{
    static int runs;
    int codes[LAUNCHED_MAX];
    struct err err = {0};
    struct buf bytes = BUF_INIT(1 << 20);

    f->cfg.save_path = path_in(f, "m.safetensors");
    launched.port = 29527;
    launched.test = arena_printf(&f->arena, "gpt2-%d", runs++);
    launched_run(world, one_rank, f, codes);
    for (int r = 0; r < world; r++)
        assert_int_equal(codes[r], 0);
    if (fs_read(f->cfg.save_path, &bytes, &err))
        fail_msg("%s", err.msg);
    unlink(f->cfg.save_path);
    return bytes;
}

/* The last run went on: afresh it would have ended with the same weights. */
static void assert_resumed(struct fixture *f)
{
    cleanup_buf struct buf out = BUF_INIT(1 << 20);
    struct err err;

    assert_int_equal(fs_read(path_in(f, "out"), &out, &err), 0);
    assert_non_null(strstr(buf_str(&out), "resumed from "));
}

static void assert_same(const struct buf *a, const struct buf *b)
{
    assert_int_equal(a->len, b->len);
    assert_memory_equal(a->data, b->data, a->len);
}

/* 48 tokens a step: four micro-batches of one rank, two of two, one of four. In rank order the sums of four are those of
 * one; of two they are grouped otherwise. */
static void ranks_are_micro_batches(void **state)
{
    struct fixture *f = *state;
    cleanup_buf struct buf one = weights_of(f, 1);
    cleanup_buf struct buf four = weights_of(f, 4);

    assert_same(&one, &four);
    f->cfg.seed++;
    cleanup_buf struct buf other = weights_of(f, 1);
    assert_true(memcmp(one.data, other.data, one.len) != 0);
}

/* Ten steps, a checkpoint, ten more. */
static void goes_on_bit_by_bit(void **state)
{
    struct fixture *f = *state;

    f->cfg.ckpt_dir = path_in(f, "none");
    cleanup_buf struct buf whole = weights_of(f, 2);
    f->cfg.ckpt_dir = path_in(f, "whole");
    f->cfg.max_steps = 10;
    f->cfg.save_steps = 10;
    cleanup_buf struct buf half = weights_of(f, 2);
    f->cfg.max_steps = 0;
    f->cfg.save_steps = 0;
    f->cfg.resume = "auto";
    cleanup_buf struct buf rest = weights_of(f, 2);
    assert_resumed(f);
    assert_true(memcmp(half.data, whole.data, whole.len) != 0);
    assert_same(&whole, &rest);
}

/* In the middle of an epoch, with other ranks than before: what one rank would have done alone. */
static void goes_on_with_other_ranks(void **state)
{
    struct fixture *f = *state;
    static const int ways[][3] = {{1, 4, 1}, {4, 1, 4}};
    cleanup_buf struct buf whole = weights_of(f, 1);

    for (int w = 0; w < 2; w++) {
        f->cfg.ckpt_dir = path_in(f, w ? "w1" : "w0");
        for (int part = 0; part < 3; part++) { /* 40 windows, 10 steps an epoch */
            const int until[] = {3, 17, 0};
            f->cfg.max_steps = until[part];
            f->cfg.save_steps = until[part];
            f->cfg.resume = part ? "auto" : "never";
            cleanup_buf struct buf got = weights_of(f, ways[w][part]);
            if (part)
                assert_resumed(f);
            if (part == 2)
                assert_same(&got, &whole);
        }
    }
}

enum { WINDOWS = 40, RATE_EPOCHS = 2, RATE_STEPS = WINDOWS * RATE_EPOCHS };

/* The rate of each step of a run, by the samples that all ranks had taken before it; 0: no step began there. And where the run
 * ended in its epoch. */
struct rates {
    double at[RATE_STEPS];
    int steps, samples, epoch_steps;
};

static double number_behind(const char *line, const char *key)
{
    const char *at = strstr(line, key);

    if (!at)
        fail_msg("no %s in %s", key, line);
    return strtod(at + strlen(key), NULL);
}

/* `world` ranks train, afresh or from where *from ended, up to `until` steps of the run; 0: to its end. */
static void take_rates(struct fixture *f, int world, int until, const struct rates *from, struct rates *ret)
{
    cleanup_buf struct buf out = BUF_INIT(1 << 20);
    int first = 0, epoch = 0, step = 0;
    struct err err;

    f->cfg.resume = from ? "auto" : "never";
    f->cfg.max_steps = f->cfg.save_steps = until;
    cleanup_buf struct buf weights = weights_of(f, world);
    assert_true(weights.len > 0);
    assert_int_equal(fs_read(path_in(f, "out"), &out, &err), 0);
    *ret = (struct rates){0};
    for (char *line = strtok((char *)(uintptr_t)buf_str(&out), "\n"); line; line = strtok(NULL, "\n")) {
        if (strstr(line, "\"event\":\"train\"")) {
            epoch = (int)number_behind(line, "\"epoch\":");
            step = (int)number_behind(line, "\"step\":");
            first = first ? first : epoch;
        }
        if (!strstr(line, "\"event\":\"speed\""))
            continue;
        const int before = from && epoch == first ? from->samples + (step - 1 - from->epoch_steps) * world
                                                  : (step - 1) * world;
        ret->at[(epoch - 1) * WINDOWS + before] = number_behind(line, "\"lr\":");
        ret->steps++;
        ret->samples = before + world < WINDOWS ? before + world : 0;
        ret->epoch_steps = ret->samples ? step : 0;
    }
}

/* The last of the runs had some steps where the undisturbed one had, too, and the same rates there. */
static void assert_same_rates(const struct rates *got, const struct rates *want, const int *world)
{
    int same = 0;

    for (int i = 0; i < RATE_STEPS; i++) {
        same += got->at[i] > 0 && want->at[i] > 0;
        if (got->at[i] > 0 && want->at[i] > 0 && got->at[i] != want->at[i])
            fail_msg("%d, %d, %d ranks: rate %g at sample %d, expected %g", world[0], world[1], world[2],
                     got->at[i], i, want->at[i]);
    }
    assert_true(same > 0);
}

/* Whatever the ranks before and after two stops, the rate at a sample is that of the run that was not disturbed. */
static void the_rate_follows_the_samples(void **state)
{
    static const struct schedule_spec schedules[] = {
        {.type = SCHEDULE_COSINE,
         .per_step = true,
         .every = 1,
         .warmup = 9,
         .warmup_last_full = true,
         .min_lr = 6e-4},
        {.type = SCHEDULE_COSINE, .per_step = true, .every = 1},
        {.type = SCHEDULE_STEP, .per_step = true, .every = 7, .gamma = 0.5, .warmup = 5, .warmup_from = 0.25},
        {.type = SCHEDULE_MULTI_STEP,
         .per_step = true,
         .every = 1,
         .gamma = 0.5,
         .milestones = 2,
         .milestone = {5, 21}},
        {.type = SCHEDULE_STEP, .every = 1, .gamma = 0.5},
    };
    static const int worlds[][3] = {{1, 2, 4}, {2, 3, 4}, {1, 3, 1}, {3, 1, 2}, {2, 1, 4}};
    struct fixture *f = *state;
    uint32_t draw = 1;

    f->cfg.total_batch_tokens = 0;
    f->cfg.log_format = LOG_FORMAT_JSON;
    f->cfg.log_interval = 1;
    for (size_t s = 0; s < ARRAY_LEN(schedules); s++) {
        const int *world = worlds[s];
        const int steps = (WINDOWS + world[0] - 1) / world[0] * RATE_EPOCHS;
        struct rates whole, first, second, third;

        draw = draw * 1103515245 + 12345;
        const int stop = 1 + (int)(draw >> 16) % (steps / 2);
        f->cfg.schedule = schedules[s];
        f->cfg.ckpt_dir = path_in(f, arena_printf(&f->arena, "rates-%zu", s));
        take_rates(f, world[0], 0, NULL, &whole);
        take_rates(f, world[0], stop, NULL, &first);
        assert_true(whole.steps == steps && first.steps == stop);
        take_rates(f, world[1], stop + 2, &first, &second);
        take_rates(f, world[2], 0, &second, &third);
        assert_same_rates(&second, &whole, world);
        assert_same_rates(&third, &whole, world);
    }
}

static void batches_that_do_not_divide_are_refused(void **state)
{
    struct fixture *f = *state;
    struct config cfg = f->cfg;
    struct err err;

    assert_int_equal(config_batch(&cfg, 2, &err), 0);
    assert_int_equal(cfg.batch_size, 2);
    assert_int_equal(cfg.micro_batches, 2);
    cfg = f->cfg;
    assert_int_equal(config_batch(&cfg, 3, &err), -1);
    assert_string_equal(
        err.msg, "--total_batch_tokens 48: expected 1..1024 times 36 (12 tokens x batch size 1 x 3 ranks)");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(ranks_are_micro_batches, make, unmake),
        cmocka_unit_test_setup_teardown(goes_on_bit_by_bit, make, unmake),
        cmocka_unit_test_setup_teardown(goes_on_with_other_ranks, make, unmake),
        cmocka_unit_test_setup_teardown(the_rate_follows_the_samples, make, unmake),
        cmocka_unit_test_setup_teardown(batches_that_do_not_divide_are_refused, make, unmake),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
