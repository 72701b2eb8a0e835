/* a_training.c - opened, stepped, compared, closed. */
#include "a_training.h"

#include "test.h"

void begin_training(struct training *t, const struct train_parts *p, int64_t items)
{
    struct err err = {0};

    if (train_make(&t->train, p, &err))
        fail_msg("%s", err.msg);
    t->part = (struct evaluate_parts){.comm = p->comm,
                                      .ctx = p->ctx,
                                      .pipeline = p->pipeline,
                                      .resident = t->train.resident,
                                      .loss = p->loss,
                                      .feed = p->feed,
                                      .items = items,
                                      .timeout_ms = p->timeout_ms};
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
    assert_memory_equal(model_values(hurried->pipeline.model), model_values(patient->pipeline.model),
                        model_len(patient->pipeline.model) * sizeof(float));
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
