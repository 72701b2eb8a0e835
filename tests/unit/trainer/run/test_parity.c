/* test_parity.c - the first steps of mnist-cnn on the real Fashion-MNIST against PyTorch's record
 * (tests/golden/torch/mnist_cnn.txt): initial weights, split, order of samples, gradients, losses. */
#include "test.h"

#include "common/cleanup.h"
#include "trainer/run/session.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define DATA "/usr/share/datasets/fashion-mnist"
#define GOLDEN TK_SOURCE_DIR "/tests/golden/torch/mnist_cnn.txt"

enum { SKIPPED = 77, STEPS = 10, TENSORS = 10 };

static char *no_environment(const char *name)
{
    (void)name;
    return NULL;
}

struct golden {
    int losses, gradients;
    double loss[STEPS];
    char name[TENSORS][64];
    double norm[TENSORS];
};

static void read_golden(struct golden *g)
{
    char line[256];
    int step;
    cleanup_fclose FILE *f = fopen(GOLDEN, "r");

    assert_non_null(f);
    while (fgets(line, sizeof(line), f)) {
        if (g->losses < STEPS && sscanf(line, "loss %d %lf", &step, &g->loss[g->losses]) == 2)
            g->losses++;
        else if (g->gradients < TENSORS &&
                 sscanf(line, "gradient %63s %lf", g->name[g->gradients], &g->norm[g->gradients]) == 2)
            g->gradients++;
    }
    assert_int_equal(g->losses, STEPS);
    assert_int_equal(g->gradients, TENSORS);
}

static void check_gradients(const struct session *s, const struct golden *g)
{
    int rows;
    const struct param_row *row = model_params(s->model, &rows);

    assert_int_equal(rows, TENSORS);
    for (int i = 0; i < rows; i++) {
        double square = 0;
        for (size_t k = 0; k < row[i].len; k++)
            square += (double)s->train.grad[row[i].offset + k] * (double)s->train.grad[row[i].offset + k];
        assert_string_equal(row[i].name, g->name[i]);
        if (!(fabs(sqrt(square) / g->norm[i] - 1) <= 1e-4))
            fail_msg("gradient of %s: norm %.9g, PyTorch has %.9g", row[i].name, sqrt(square), g->norm[i]);
    }
}

static void the_first_steps_are_pytorchs(void **state)
{
    (void)state;
    cleanup_arena struct arena a = {0};
    struct golden g = {0};
    struct config cfg;
    struct err err = {0};
    cleanup_fclose FILE *out = fopen("/dev/null", "w");
    struct run_env env = {.get = no_environment, .clock = clock_system(), .out = out};
    cleanup_rig struct session s = {0};

    read_golden(&g);
    assert_int_equal(config_load("mnist-cnn", &a, &cfg, &err), 0);
    cfg.data_dir = DATA;
    if (session_open(&s, &cfg, &env, &err))
        fail_msg("%s", err.msg);
    train_epoch(&s.train, 0);
    for (int step = 0; step < STEPS; step++) {
        struct train_result r;
        assert_int_equal(train_step(&s.train, step, 0.001, &r, &err), 0);
        if (!(fabs((double)r.loss / g.loss[step] - 1) <= 1e-4))
            fail_msg("step %d: loss %.9g, PyTorch has %.9g", step + 1, (double)r.loss, g.loss[step]);
        if (step == 0)
            check_gradients(&s, &g);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_steps_are_pytorchs),
    };

    if (access(DATA, R_OK)) {
        print_message("skipped: " DATA " is absent (package dataset-fashion-mnist)\n");
        return SKIPPED;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
