/* test_parity_steps.c - single steps of mnist-cnn, each from PyTorch's weights and moments, against what
 * PyTorch made of them. The record is too large to keep: tests/golden/torch/mnist_cnn_steps.py makes it,
 * names it in TK_PARITY_STEPS and starts this program; without it the test is skipped. */
#include "test.h"

#include "common/cleanup.h"
#include "trainer/run/session.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define DATA "/usr/share/datasets/fashion-mnist"

enum { SKIPPED = 77, STEPS_MIN = 10 };

/* Where two values of a max-pool's window, or a ReLU's input and 0, are equal but for rounding, two correct
 * programs choose differently, and the gradient jumps. PyTorch with oneDNN against PyTorch without it: 8 of
 * these 100 steps are over 1e-4, the worst by 2.8e-3. So: no step over JUMP, and few over CLOSE. */
#define CLOSE 1e-4
#define JUMP 1e-2
enum { JUMPS_PERCENT = 15 };

static char *no_environment(const char *name)
{
    (void)name;
    return NULL;
}

/* |a - b| / |b| of one tensor. */
static double distance(const float *a, const float *b, size_t n)
{
    double error = 0;
    double square = 0;

    for (size_t i = 0; i < n; i++) {
        error += ((double)a[i] - (double)b[i]) * ((double)a[i] - (double)b[i]);
        square += (double)b[i] * (double)b[i];
    }
    return square > 0 ? sqrt(error / square) : sqrt(error);
}

struct worst {
    double loss, gradient, update;
    int jumps;               /* steps with a gradient over CLOSE */
    double gradient_of_rest; /* the worst of the others */
};

/* One recorded step: where it starts, its gradient, its loss. */
struct record {
    float *weights, *m, *v, *grad, *loss;
};

static bool read_record(FILE *f, float *at, size_t n, struct record *r)
{
    *r = (struct record){at, at + n, at + 2 * n, at + 3 * n, at + 4 * n};
    return fread(at, sizeof(float), 4 * n + 1, f) == 4 * n + 1;
}

static void compare_step(struct session *s, const struct record *r, int64_t step, struct worst *worst)
{
    struct train_result result;
    struct err err;
    size_t n = s->model->len;
    const struct param_row *row = s->model->row;

    memcpy(s->model->values, r->weights, n * sizeof(float));
    memcpy(s->optim.m, r->m, n * sizeof(float));
    memcpy(s->optim.v, r->v, n * sizeof(float));
    s->optim.step = step;
    assert_int_equal(train_step(&s->train, step, 0.001, &result, &err), 0);
    double loss = fabs((double)result.loss / (double)*r->loss - 1);
    worst->loss = fmax(worst->loss, loss);
    if (!(loss <= 1e-5))
        fail_msg("step %lld: loss %.9g, PyTorch has %.9g", (long long)step + 1, (double)result.loss,
                 (double)*r->loss);
    double gradient = 0;
    for (int i = 0; i < s->model->rows; i++)
        gradient =
            fmax(gradient, distance(s->train.grad + row[i].offset, r->grad + row[i].offset, row[i].len));
    worst->gradient = fmax(worst->gradient, gradient);
    if (gradient > CLOSE)
        worst->jumps++;
    else
        worst->gradient_of_rest = fmax(worst->gradient_of_rest, gradient);
}

static void steps_are_pytorchs(void **state)
{
    (void)state;
    cleanup_arena struct arena a = {0};
    struct config cfg;
    struct err err = {0};
    cleanup_fclose FILE *out = fopen("/dev/null", "w");
    cleanup_fclose FILE *f = fopen(getenv("TK_PARITY_STEPS"), "r");
    struct run_env env = {.get = no_environment, .clock = clock_system(), .out = out};
    cleanup_session struct session s = {0};
    struct worst worst = {0};
    struct record r;
    int64_t step = 0;

    assert_non_null(f);
    assert_int_equal(config_load("mnist-cnn", &a, &cfg, &err), 0);
    cfg.data_dir = DATA;
    if (session_open(&s, &cfg, &env, &err))
        fail_msg("%s", err.msg);
    size_t n = s.model->len;
    cleanup_free float *room = calloc(4 * n + 1, sizeof(float));
    assert_non_null(room);
    train_epoch(&s.train, 0);
    while (read_record(f, room, n, &r)) {
        if (step > 0)
            worst.update = fmax(worst.update, distance(s.model->values, r.weights, n));
        compare_step(&s, &r, step++, &worst);
    }
    print_message(
        "%lld steps; worst relative distances: loss %.2g, updated weights %.2g, gradients %.2g; %d steps "
        "have one over %g, the worst of the others is %.2g\n",
        (long long)step, worst.loss, worst.update, worst.gradient, worst.jumps, CLOSE,
        worst.gradient_of_rest);
    assert_true(step >= STEPS_MIN);
    assert_true(worst.update <= 1e-4);
    assert_true(worst.gradient <= JUMP);
    assert_true(worst.jumps * 100 <= JUMPS_PERCENT * step);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_are_pytorchs),
    };

    if (!getenv("TK_PARITY_STEPS")) {
        print_message("skipped: needs PyTorch's record (tests/golden/torch/mnist_cnn_steps.py)\n");
        return SKIPPED;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
