/* test_parity_presets.c - initial weights, data and the first 100 losses of the presets against PyTorch's record
 * (tests/golden/torch/<preset>-<ranks>.txt, made by presets.py there), at one rank and at two. */
#include "test.h"

#include "../launched.h"
#include "common/cleanup.h"
#include "sanitized.h"
#include "trainer/run/session.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#define FASHION "/usr/share/datasets/fashion-mnist"

enum { STEPS = 100 };
#define LOSS_TOLERANCE 1e-5 /* relative; PyTorch against itself at other numbers of threads: 1e-7 */

struct golden {
    unsigned weights, data;
    int losses;
    double loss[STEPS];
};

static void read_golden(const char *preset, int world, struct golden *g)
{
    char path[512];
    char line[256];
    int step;

    snprintf(path, sizeof(path), TK_SOURCE_DIR "/tests/golden/torch/%s-%d.txt", preset, world);
    cleanup_fclose FILE *f = fopen(path, "r");
    assert_non_null(f);
    while (fgets(line, sizeof(line), f)) {
        if (g->losses < STEPS && sscanf(line, "loss %d %lf", &step, &g->loss[g->losses]) == 2)
            assert_int_equal(step, ++g->losses);
        else
            (void)!(sscanf(line, "weights %x", &g->weights) == 1 || sscanf(line, "data %x", &g->data) == 1);
    }
    assert_int_equal(g->losses, STEPS);
}

static char *environment(const char *name)
{
    return launched.world == 1 ? NULL : launched_get(name);
}

/* As PyTorch has the inputs: channels first. */
static uLong crc_of_data(const struct dataset *d)
{
    const struct data_layout *l = &d->layout;
    size_t pixels = (size_t)l->rows * (size_t)l->cols;
    size_t channels = (size_t)l->channels;
    const float *x = d->train.x;
    uLong sum = 0;

    for (int64_t i = 0; i < l->train_items; i++, x += pixels * channels)
        for (size_t c = 0; c < channels; c++)
            for (size_t p = 0; p < pixels; p++)
                sum = crc32(sum, (const Bytef *)&x[p * channels + c], sizeof(float));
    return crc32(sum, d->train.labels ? (const Bytef *)d->train.labels : (const Bytef *)d->train.values,
                 (uInt)((size_t)l->train_items * sizeof(float)));
}

/* Each rank's weights and the mean losses are those of the record; 0 when they are. */
static int compare(struct session *s, const struct golden *g)
{
    struct err err;
    int64_t steps = sampler_steps(&s->train.p.sampler, s->cfg->batch_size);
    struct model *m = s->model;

    if (s->pipeline.at.stages > 1 && pipeline_whole(&s->pipeline, &m, &err))
        return print_error("rank %d: %s\n", launched.rank, err.msg), 1;
    uLong sum =
        m ? crc32(0, (const Bytef *)model_values(m), (uInt)(model_len(m) * sizeof(float))) : g->weights;
    if (sum != g->weights) {
        print_error("rank %d: weights %08lx, PyTorch has %08x\n", launched.rank, sum, g->weights);
        return 1;
    }
    if (g->data && crc_of_data(&s->data.set) != g->data) {
        print_error("rank %d: the data are not PyTorch's\n", launched.rank);
        return 1;
    }
    for (int step = 0; step < (SANITIZED ? STEPS / 10 : STEPS); step++) {
        struct train_result r;
        if (step % steps == 0)
            train_epoch(&s->train, step / steps);
        if (train_step(&s->train, step % steps, s->cfg->optimizer.lr, &r, &err)) {
            print_error("rank %d: %s\n", launched.rank, err.msg);
            return 1;
        }
        if (!(fabs((double)r.loss / g->loss[step] - 1) <= LOSS_TOLERANCE)) {
            print_error("rank %d, step %d: loss %.9g, PyTorch has %.9g\n", launched.rank, step + 1,
                        (double)r.loss, g->loss[step]);
            return 1;
        }
    }
    return 0;
}

static int train(const char *preset, const struct golden *g)
{
    cleanup_arena struct arena a = {0};
    struct config cfg;
    struct err err = {0};
    cleanup_fclose FILE *out = fopen("/dev/null", "w");
    struct run_env env = {.get = environment, .clock = clock_system(), .out = out};
    cleanup_rig struct session s = {0};

    if (config_load(preset, &a, &cfg, &err))
        return print_error("%s\n", err.msg), 1;
    cfg.data_dir = FASHION;
    cfg.seed = 0;
    cfg.timeout_s = 60;
    cfg.save_path = NULL;
    if (session_open(&s, &cfg, &env, &err))
        return print_error("rank %d: %s\n", launched.rank, err.msg), 1;
    return compare(&s, g);
}

struct followed {
    const char *preset;
    struct golden golden;
};

static int rank_main(void *ctx, int rank)
{
    const struct followed *it = ctx;

    (void)rank;
    return train(it->preset, &it->golden);
}

/* `world` ranks of ours beside as many of PyTorch's DDP, or one that holds all stages. */
static void follow_cut(const char *preset, int world, bool stages)
{
    struct followed it = {.preset = preset};
    int codes[LAUNCHED_MAX];

    read_golden(preset, stages ? 1 : world, &it.golden);
    launched_run(world, rank_main, &it, codes);
    for (int r = 0; r < world; r++)
        assert_int_equal(codes[r], 0);
}

static void follow(const char *preset, int world)
{
    follow_cut(preset, world, false);
}

static void fashion_mlp(void **state)
{
    (void)state;
    if (access(FASHION, R_OK)) {
        print_message("skipped: " FASHION " is absent (package dataset-fashion-mnist)\n");
        skip();
    }
    follow("fashion-mlp", 1);
    follow("fashion-mlp", 2);
}

static void linear(void **state)
{
    (void)state;
    follow("linear", 1);
    follow("linear", 2);
}

static void convnet(void **state)
{
    (void)state;
    follow("convnet", 1);
    follow("convnet", 2);
}

static void pipeline(void **state)
{
    (void)state;
    follow("pipeline", 1);
    follow_cut("pipeline", 3, true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fashion_mlp),
        cmocka_unit_test(linear),
        cmocka_unit_test(convnet),
        cmocka_unit_test(pipeline),
    };

    launched = (struct launched){.port = 29517, .test = "parity"};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
