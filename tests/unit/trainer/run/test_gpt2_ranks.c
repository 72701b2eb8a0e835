/* test_gpt2_ranks.c - GPT-2 on several ranks: the weights of one that takes as many micro-batches, and of runs that stop and
 * continue, bit by bit. */
#include "test.h"

#include "../a_run.h"
#include "common/contract.h"

#include <stdlib.h>
#include <string.h>

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

static int setup(void **state)
{
    make_of(state, MODEL);
    struct fixture *f = *state;
    f->cfg.data_dir = GOLDEN;
    f->cfg.save_seconds = 0;
    a_run_get = environment;
    return 0;
}

/* The last run went on: afresh it would have ended with the same weights. */
static void assert_resumed(struct fixture *f)
{
    assert_non_null(strstr(output(f, 0), "resumed from "));
}

/* 48 tokens a step: four micro-batches of one rank, two of two, one of four. In rank order the sums of four are those of
 * one; of two they are grouped otherwise. */
static void ranks_are_micro_batches(void **state)
{
    struct fixture *f = *state;
    cleanup_buf struct buf one = BUF_INIT(1 << 20), four = BUF_INIT(1 << 20), other = BUF_INIT(1 << 20);

    weights_of(f, 1, &one);
    weights_of(f, 4, &four);
    assert_same(&one, &four);
    f->cfg.seed++;
    weights_of(f, 1, &other);
    assert_true(memcmp(one.data, other.data, one.len) != 0);
}

/* In the middle of an epoch, with other ranks than before or as many: what one rank would have done alone. */
static void goes_on_bit_by_bit(void **state)
{
    struct fixture *f = *state;
    static const int ways[][3] = {{1, 4, 1}, {4, 1, 4}, {4, 4, 4}};
    cleanup_buf struct buf whole = BUF_INIT(1 << 20), got = BUF_INIT(1 << 20);

    weights_of(f, 1, &whole);
    for (size_t w = 0; w < ARRAY_LEN(ways); w++) {
        f->cfg.ckpt_dir = path_in(f, arena_printf(&f->arena, "w%zu", w));
        for (int part = 0; part < 3; part++) { /* 40 windows, 10 steps an epoch */
            const int until[] = {3, 17, 0};
            f->cfg.max_steps = until[part];
            f->cfg.save_steps = until[part];
            f->cfg.resume = part ? "auto" : "never";
            weights_of(f, ways[w][part], &got);
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
    int first = 0, epoch = 0, step = 0;

    f->cfg.resume = from ? "auto" : "never";
    f->cfg.max_steps = f->cfg.save_steps = until;
    go_all(f, world, 0);
    *ret = (struct rates){0};
    for (char *line = strtok((char *)(uintptr_t)output(f, 0), "\n"); line; line = strtok(NULL, "\n")) {
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(ranks_are_micro_batches, setup, unmake),
        cmocka_unit_test_setup_teardown(goes_on_bit_by_bit, setup, unmake),
        cmocka_unit_test_setup_teardown(the_rate_follows_the_samples, setup, unmake),
    };

    launched.test = "gpt2";
    return cmocka_run_group_tests(tests, NULL, NULL);
}
