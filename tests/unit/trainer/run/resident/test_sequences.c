/* test_sequences.c - a GPT-2 on an emulated GPU beside the same on the CPU: losses, norms of gradients, weights and
 * evaluations, with micro-batches, bounded gradients, decay of matrices alone, and activations computed again.
 */
#include "test.h"

#include "a_gpt2.h"
#include "cudart.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static void check_step(struct training *device, struct training *cpu, int epoch, int64_t step)
{
    const double lr = 0.01 / (1 + epoch);
    struct train_result a, b;

    run_step(device, step, lr, true, &a);
    run_step(cpu, step, lr, true, &b);
    assert_true(a.known && a.back == 0 && a.flags == 0);
    if (fabsf(a.loss - b.loss) > 1e-5f * fabsf(b.loss) || fabs(a.own - b.own) > 1e-5 * b.own)
        fail_msg("epoch %d, step %d: loss %.9g (own %.9g), expected %.9g (%.9g)", epoch, (int)step,
                 (double)a.loss, a.own, (double)b.loss, b.own);
    if (cpu->optim.spec.clip > 0 &&
        !(fabs(device->optim.grad_norm - cpu->optim.grad_norm) <= 1e-4 * cpu->optim.grad_norm))
        fail_msg("epoch %d, step %d: norm %.9g, expected %.9g", epoch, (int)step, device->optim.grad_norm,
                 cpu->optim.grad_norm);
}

static void check_task(const struct task *task)
{
    const int64_t steps = (task->items + task->batch - 1) / task->batch;
    struct training device, cpu;
    struct err err = {0};
    float first = 0;

    open_training(&device, task, true);
    open_training(&cpu, task, false);
    check_evaluations(&device, &cpu, task->items - 1, 1e-5);
    for (int epoch = 0; epoch < 3; epoch++) {
        train_epoch(&device.train, epoch);
        train_epoch(&cpu.train, epoch);
        for (int64_t step = 0; step < steps; step++) {
            check_step(&device, &cpu, epoch, step);
            if (epoch == 0 && step == 0)
                first = (float)cpu.train.own_sum;
        }
    }
    check_evaluations(&device, &cpu, task->items - 1, 1e-5);
    assert_true(cpu.train.own_sum / (double)steps < 0.95 * (double)first); /* it has learnt something */
    assert_int_equal(train_pull(&device.train, TRAIN_READS_ALL, &err), 0);
    struct model *a = device.pipeline.model;
    struct model *b = cpu.pipeline.model;
    assert_true(wrong_share(a->values, b->values, a->len) < 1e-7);
    assert_true(wrong_share(device.optim.v, cpu.optim.v, a->len) < 1e-6);
    close_training(&device);
    close_training(&cpu);
    assert_int_equal(fake_cudart_pieces(), 0);
}

static void a_gpt2_learns_what_it_learns_on_the_cpu(void **state)
{
    (void)state;
    check_task(&(struct task){.batch = 4, .micro = 1, .items = 10, .clip = 0.5, .cublas = true});
    check_task(&(struct task){.batch = 4, .micro = 4, .items = 10, .clip = 0.5});
    check_task(
        &(struct task){.batch = 5, .micro = 2, .items = 12, .clip = 1e6, .recompute = true, .cublas = true});
    check_task(&(struct task){.batch = 3, .micro = 2, .items = 9});
}

/* As many steps in flight as there may be: windows of a slot are not overwritten before the device has read them. */
static void steps_in_flight_change_nothing(void **state)
{
    const struct task task = {.batch = 3, .micro = 2, .items = 39, .clip = 1, .cublas = true};
    struct training hurried, patient;

    (void)state;
    open_training(&hurried, &task, true);
    open_training(&patient, &task, true);
    check_steps_in_flight(&hurried, &patient, 2, 13, 0.01);
}

/* A token that the model does not have is named before anything is launched for it. */
static void a_token_that_is_none_is_named(void **state)
{
    const struct task task = {.batch = 4, .micro = 2, .items = 10, .cublas = true};
    struct training t;
    struct train_result r;
    struct err err = {0};

    (void)state;
    open_training(&t, &task, true);
    resident_close(t.train.resident);
    t.train.p.feed.vocab = 2;
    t.train.resident = resident_open(&t.train.p, &err);
    assert_non_null(t.train.resident);
    train_epoch(&t.train, 0);
    assert_int_equal(train_step(&t.train, 0, 0.01, &r, &err), -1);
    assert_int_equal(err.kind, ERR_INVALID);
    assert_non_null(strstr(err.msg, "gpt2.bin: token"));
    close_training(&t);
}

static void memory_that_is_not_there_is_told(void **state)
{
    const struct task task = {.batch = 4, .micro = 2, .items = 10, .clip = 1, .cublas = true};
    struct training t;

    (void)state;
    open_training(&t, &task, true);
    resident_close(TAKE(t.train.resident));
    assert_true(check_memory(&t, "cudaMalloc") + check_memory(&t, "cudaMallocHost") > 20);
    close_training(&t);
    assert_int_equal(fake_cudart_pieces(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_gpt2_learns_what_it_learns_on_the_cpu),
        cmocka_unit_test(steps_in_flight_change_nothing),
        cmocka_unit_test(a_token_that_is_none_is_named),
        cmocka_unit_test(memory_that_is_not_there_is_told),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
