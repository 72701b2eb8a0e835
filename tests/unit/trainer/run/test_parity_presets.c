/* test_parity_presets.c - initial weights, data, gradients and the first losses of the presets against PyTorch's record
 * (tests/golden/torch/<preset>-<ranks>.txt, made by presets.py there, and mnist_cnn.txt, by mnist_cnn.py), at one rank and at two. */
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

enum { STEPS_MAX = 100, TENSORS_MAX = 10 };

struct golden {
    unsigned weights, data; /* 0: not recorded */
    int losses, gradients;
    double loss[STEPS_MAX];
    char name[TENSORS_MAX][64];
    double norm[TENSORS_MAX]; /* of the first step's gradient */
};

static void read_golden(const char *name, struct golden *g)
{
    char path[512];
    char line[256];
    int step;

    snprintf(path, sizeof(path), TK_SOURCE_DIR "/tests/golden/torch/%s.txt", name);
    cleanup_fclose FILE *f = fopen(path, "r");
    assert_non_null(f);
    while (fgets(line, sizeof(line), f)) {
        if (g->losses < STEPS_MAX && sscanf(line, "loss %d %lf", &step, &g->loss[g->losses]) == 2)
            assert_int_equal(step, ++g->losses);
        else if (g->gradients < TENSORS_MAX &&
                 sscanf(line, "gradient %63s %lf", g->name[g->gradients], &g->norm[g->gradients]) == 2)
            g->gradients++;
        else
            (void)!(sscanf(line, "weights %x", &g->weights) == 1 || sscanf(line, "data %x", &g->data) == 1);
    }
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

struct followed {
    const char *preset;
    int64_t seed;
    double tolerance; /* of losses, relative */
    struct golden golden;
};

static bool same_gradients(const struct session *s, const struct golden *g)
{
    const struct param_row *row = s->model->row;
    bool same = !g->gradients || s->model->rows == g->gradients;

    for (int i = 0; same && i < g->gradients; i++) {
        double square = 0;
        for (size_t k = 0; k < row[i].len; k++)
            square += (double)s->train.grad[row[i].offset + k] * (double)s->train.grad[row[i].offset + k];
        same = strcmp(row[i].name, g->name[i]) == 0 && fabs(sqrt(square) / g->norm[i] - 1) <= 1e-4;
        if (!same)
            print_error("gradient of %s: norm %.9g, PyTorch has %.9g of %s\n", row[i].name, sqrt(square),
                        g->norm[i], g->name[i]);
    }
    return same;
}

/* Each rank's weights and the mean losses are those of the record; 0 when they are. */
static int compare(struct session *s, const struct followed *it)
{
    const struct golden *g = &it->golden;
    const int most = SANITIZED && g->losses > 10 ? 10 : g->losses;
    struct err err;
    int64_t steps = sampler_steps(&s->train.p.sampler, s->cfg->batch_size);
    struct model *m = s->model;

    if (s->pipeline.at.stages > 1 && pipeline_whole(&s->pipeline, &m, &err))
        return print_error("rank %d: %s\n", launched.rank, err.msg), 1;
    uLong sum = m ? crc32(0, (const Bytef *)m->values, (uInt)(m->len * sizeof(float))) : g->weights;
    if (g->weights && sum != g->weights)
        return print_error("rank %d: weights %08lx, PyTorch has %08x\n", launched.rank, sum, g->weights), 1;
    if (g->data && crc_of_data(&s->data.set) != g->data)
        return print_error("rank %d: the data are not PyTorch's\n", launched.rank), 1;
    for (int step = 0; step < most; step++) {
        struct train_result r;
        if (step % steps == 0)
            train_epoch(&s->train, step / steps);
        if (train_step(&s->train, step % steps, s->cfg->optimizer.lr, &r, &err))
            return print_error("rank %d: %s\n", launched.rank, err.msg), 1;
        if (!(fabs((double)r.loss / g->loss[step] - 1) <= it->tolerance))
            return print_error("rank %d, step %d: loss %.9g, PyTorch has %.9g\n", launched.rank, step + 1,
                               (double)r.loss, g->loss[step]),
                   1;
        if (step == 0 && !same_gradients(s, g))
            return 1;
    }
    return 0;
}

static int rank_main(void *ctx, int rank)
{
    const struct followed *it = ctx;
    cleanup_arena struct arena a = {0};
    struct config cfg;
    struct err err = {0};
    cleanup_fclose FILE *out = fopen("/dev/null", "w");
    struct run_env env = {.get = environment, .clock = clock_system(), .out = out};
    cleanup_session struct session s = {0};

    if (config_load(it->preset, &a, &cfg, &err))
        return print_error("%s\n", err.msg), 1;
    cfg.data_dir = FASHION;
    cfg.seed = it->seed;
    cfg.timeout_s = 600;
    cfg.save_path = NULL;
    if (session_open(&s, &cfg, &env, &err))
        return print_error("rank %d: %s\n", rank, err.msg), 1;
    return compare(&s, it);
}

/* `world` ranks of ours beside a record of so many losses. */
static void follow(struct followed it, int world, const char *record, int losses)
{
    int codes[LAUNCHED_MAX];

    read_golden(record, &it.golden);
    assert_true(it.golden.losses >= losses);
    it.golden.losses = losses;
    launched_run(world, rank_main, &it, codes);
    for (int r = 0; r < world; r++)
        assert_int_equal(codes[r], 0);
}

/* PyTorch against itself at other numbers of threads: 1e-7. As many of its DDP's ranks as of ours, or one that holds all stages. */
static void follow_100(const char *preset, int world, const char *record)
{
    follow((struct followed){.preset = preset, .tolerance = 1e-5}, world, record, 100);
}

static void needs_fashion(void)
{
    if (!access(FASHION, R_OK))
        return;
    print_message("skipped: " FASHION " is absent (package dataset-fashion-mnist)\n");
    skip();
}

static void fashion_mlp(void **state)
{
    (void)state;
    needs_fashion();
    follow_100("fashion-mlp", 1, "fashion-mlp-1");
    follow_100("fashion-mlp", 2, "fashion-mlp-2");
}

/* Its split and the order of its samples, too. It diverges from itself within some steps. */
static void mnist_cnn(void **state)
{
    (void)state;
    needs_fashion();
    follow((struct followed){.preset = "mnist-cnn", .seed = 1, .tolerance = 1e-4}, 1, "mnist_cnn", 10);
}

static void linear(void **state)
{
    (void)state;
    follow_100("linear", 1, "linear-1");
    follow_100("linear", 2, "linear-2");
}

static void convnet(void **state)
{
    (void)state;
    follow_100("convnet", 1, "convnet-1");
    follow_100("convnet", 2, "convnet-2");
}

static void pipeline(void **state)
{
    (void)state;
    follow_100("pipeline", 1, "pipeline-1");
    follow_100("pipeline", 3, "pipeline-1");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fashion_mlp), cmocka_unit_test(mnist_cnn), cmocka_unit_test(linear),
        cmocka_unit_test(convnet),     cmocka_unit_test(pipeline),
    };

    launched.test = "parity";
    return cmocka_run_group_tests(tests, NULL, NULL);
}
