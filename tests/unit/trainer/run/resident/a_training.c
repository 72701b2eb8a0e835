/* a_training.c - opened, stepped, compared, closed. */
#include "a_training.h"

#include "test.h"

#include "cudart.h"
#include "kernels/cuda/cuda.h"

#include <math.h>

void begin_training(struct training *t, bool device, struct pipeline_options o,
                    const struct optimizer_spec *optimizer, struct train_parts p)
{
    struct err err = {0};
    struct torch_rng rng;

    t->comm = collectives_open(&(struct collectives_config){.world = 1, .local_world = 1}, TIMEOUT_MS, &err);
    t->ctx =
        device ? cuda_make(0, PRECISION_F32, ELEMENT_F32, &err) : kctx_make(&(struct kctx_options){0}, &err);
    o.spec = &t->spec;
    o.comm = t->comm;
    o.ctx = t->ctx;
    o.timeout_ms = TIMEOUT_MS;
    if (!t->comm || !t->ctx || pipeline_open(&t->pipeline, &o, &err))
        fail_msg("%s", err.msg);
    torch_rng_seed(&rng, 3);
    assert_int_equal(pipeline_init(&t->pipeline, &rng, &err), 0);
    assert_int_equal(optim_make(&t->optim, optimizer, t->pipeline.model->row, t->pipeline.model->rows, &err),
                     0);
    p.pipeline = &t->pipeline;
    p.optim = &t->optim;
    p.sampler.world = 1;
    p.sampler.shuffle = true;
    p.seed = 77;
    if (train_make(&t->train, &p, &err))
        fail_msg("%s", err.msg);
}

void check_evaluations(struct training *device, struct training *cpu, int64_t items, double far)
{
    struct evaluate_result a, b;
    struct err err = {0};

    if (evaluate(&device->train, &device->train.p.feed, items, &a, &err) ||
        evaluate(&cpu->train, &cpu->train.p.feed, items, &b, &err))
        fail_msg("%s", err.msg);
    if (fabs(a.loss - b.loss) > far * fabs(b.loss) ||
        (isnan(b.accuracy) ? !isnan(a.accuracy) : !(fabs(a.accuracy - b.accuracy) < 1e-9)))
        fail_msg("evaluation: loss %.9g, accuracy %.9g, expected %.9g, %.9g", a.loss, a.accuracy, b.loss,
                 b.accuracy);
}

int check_memory(struct training *t, const char *function)
{
    for (int i = 0; i < 200; i++) {
        struct err err = {0};
        fake_cudart_fail(function, i);
        struct resident *r = resident_open(&t->train.p, &err);
        fake_cudart_fail("", 0);
        if (r) {
            resident_close(r);
            return i;
        }
        assert_int_equal(err.kind, ERR_FATAL);
    }
    fail_msg("%s is asked too often", function);
    return 0;
}

void close_training(struct training *t)
{
    train_release(&t->train);
    optim_release(&t->optim);
    pipeline_release(&t->pipeline);
    tokens_free(t->tokens);
    kctx_free(t->ctx);
    collectives_close(t->comm);
}

void run_step(struct training *t, int64_t step, double lr, bool exact, struct train_result *r)
{
    struct err err = {0};

    t->train.exact = exact;
    if (train_step(&t->train, step, lr, r, &err))
        fail_msg("%s", err.msg);
}

void check_steps_in_flight(struct training *hurried, struct training *patient, int epochs, int64_t steps,
                           double lr)
{
    struct train_result r;
    struct err err = {0};
    int behind = 0;

    for (int epoch = 0; epoch < epochs; epoch++) {
        train_epoch(&hurried->train, epoch);
        train_epoch(&patient->train, epoch);
        for (int64_t step = 0; step < steps; step++) {
            const double now = lr / (double)(1 + epoch + step);
            run_step(hurried, step, now, false, &r);
            behind = r.back > behind ? r.back : behind;
            run_step(patient, step, now, true, &r);
        }
    }
    assert_int_equal(behind, RESIDENT_LAG + 1);
    assert_int_equal(train_pull(&hurried->train, TRAIN_READS_ALL, &err), 0);
    assert_int_equal(train_pull(&patient->train, TRAIN_READS_ALL, &err), 0);
    assert_memory_equal(hurried->pipeline.model->values, patient->pipeline.model->values,
                        patient->pipeline.model->len * sizeof(float));
    close_training(hurried);
    close_training(patient);
}

double wrong_share(const float *a, const float *b, size_t n)
{
    double wrong = 0;
    double all = 0;

    for (size_t i = 0; i < n; i++) {
        wrong += ((double)a[i] - (double)b[i]) * ((double)a[i] - (double)b[i]);
        all += (double)b[i] * (double)b[i];
    }
    return wrong / all;
}
