/* test_resident.c - a training on an emulated GPU beside the same on the CPU: losses, weights, statistics, evaluations;
 * graphs, the ring of orders and records, and what happens when the device fails. */
#include "test.h"

#include "a_training.h"
#include "collectives/device.h"
#include "cudart.h"
#include "kernels/cuda/cuda.h"
#include "trainer/cli/config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ITEMS = 50, EVALUATED = ITEMS - 3, SIDE = 8, PIXELS = SIDE * SIDE, BATCH = 12, EPOCHS = 4, STEPS = 5 };

struct task {
    const struct optimizer_ops *optimizer;
    bool decay;
    bool values; /* mse over values instead of labels */
    bool subset;
    bool mlp; /* MLP instead of NET */
    double lr;
    struct device_comm *device_comm;
};

struct data {
    uint8_t image[ITEMS * PIXELS];
    float input[ITEMS * PIXELS];
    int32_t label[ITEMS];
    float value[ITEMS * 3];
    uint32_t subset[ITEMS];
};

static struct data data;

static void make_data(void)
{
    uint32_t x = 12345;

    for (int i = 0; i < ITEMS; i++) {
        data.label[i] = i % 3;
        data.subset[i] = (uint32_t)(ITEMS - 1 - i);
        for (int k = 0; k < 3; k++)
            data.value[i * 3 + k] = (float)((i + k) % 5) / 5;
        for (int p = 0; p < PIXELS; p++) {
            x = x * 1664525u + 1013904223u;
            data.image[i * PIXELS + p] = (uint8_t)((p / SIDE % 3 == data.label[i] ? 200u : 0u) + (x >> 27));
            data.input[i * PIXELS + p] = (float)(x >> 8) / 8388608.0F - 1;
        }
    }
}

/* No bias in front of the batch norm: its gradient is nothing but rounding, and Adam blows it up. */
static const char NET[] =
    "[{type: conv2d, name: c1, out: 4, kernel: 3, bias: false}, {type: batchnorm2d, name: n1}, relu, "
    "{type: maxpool2d, size: 2}, flatten, {type: dropout, p: 0.2}, {type: linear, name: d1, out: 9}, "
    "relu, {type: linear, name: d2, out: 3}]";

/* Widths as fashion-mlp has them: each bias begins at a multiple of 16 bytes, as cuBLAS's epilogues want it. */
static const char MLP[] =
    "[flatten, {type: linear, name: d1, out: 16}, relu, {type: linear, name: d2, out: 16}, relu, "
    "{type: linear, name: d3, out: 3}]";

static struct model_spec net(const char *layers)
{
    cleanup_arena struct arena a = {0};
    char text[1024];
    struct config cfg;
    struct err err = {0};

    snprintf(text, sizeof(text),
             "name: t\nloss: cross_entropy\noptimizer: {type: sgd, lr: 1}\ndata: {format: idx}\n"
             "model: {input: {rows: 8, cols: 8, channels: 1}, layers: %s}\n",
             layers);
    if (config_decode("t.yaml", text, strlen(text), &a, &cfg, &err))
        fail_msg("%s", err.msg);
    return cfg.model;
}

static void open_training(struct training *t, const struct task *task, bool device)
{
    static const struct data_spec decode = {.stats = 1, .mean = {0.5}, .std = {0.5}};
    struct optimizer_spec optimizer =
        optimizer_spec_of(task->optimizer ? task->optimizer : &optimizer_adam, 0);
    struct dataset set = {
        .layout = {.train_items = ITEMS, .rows = SIDE, .cols = SIDE, .channels = 1, .floats = task->values},
        .train = {.items = ITEMS, .x = task->values ? (void *)data.input : data.image}};
    struct train_parts p = {.sampler = {.items = ITEMS},
                            .loss = {.type = task->values ? LOSS_MSE : LOSS_CROSS_ENTROPY}};

    *t = (struct training){.spec = net(task->mlp ? MLP : NET)};
    set.layout.values = task->values ? 3 : 0;
    set.train.labels = task->values ? NULL : data.label;
    set.train.values = task->values ? data.value : NULL;
    if (task->optimizer == &optimizer_sgd) {
        optimizer.number[0] = 0.9; /* momentum */
        optimizer.number[1] = 0.1; /* dampening */
    }
    optimizer.weight_decay = task->decay ? 0.1 : 0;
    optimizer.decay_matrices_only = task->decay;
    feed_init(&p.feed, &set, false, task->subset ? data.subset : NULL, &decode);
    begin_training(
        t, device,
        (struct pipeline_options){.batch = BATCH, .evaluate = 16, .device_comm = task->device_comm},
        &optimizer, p);
}

static void check_state(struct training *device, struct training *cpu)
{
    struct model *a = device->pipeline.model;
    struct model *b = cpu->pipeline.model;
    struct err err = {0};

    assert_int_equal(train_pull(&device->train, TRAIN_READS_ALL, &err), 0);
    assert_true(wrong_share(a->values, b->values, a->len) < 1e-8);
    assert_true(wrong_share(device->optim.m, cpu->optim.m, a->len) < 1e-6);
    const struct state_row *row = a->state, *want = b->state;
    for (int i = 0; i < a->states; i++) {
        if (row[i].type == STATE_I64)
            assert_memory_equal(row[i].data, want[i].data, row[i].bytes);
        else if (row[i].buffer)
            assert_true(wrong_share(row[i].data, want[i].data, row[i].bytes / sizeof(float)) < 1e-9);
    }
    assert_int_equal(device->optim.step, cpu->optim.step);
}

static void check_task(const struct task *task)
{
    struct training device, cpu;
    struct err err = {0};

    open_training(&device, task, true);
    open_training(&cpu, task, false);
    check_evaluations(&device, &cpu, EVALUATED, 1e-6);
    for (int epoch = 0; epoch < EPOCHS; epoch++) {
        double sums[4];
        train_epoch(&device.train, epoch);
        train_epoch(&cpu.train, epoch);
        for (int step = 0; step < STEPS; step++) {
            double lr = task->lr / (1 + epoch + step);
            struct train_result a, b;
            run_step(&device, step, lr, true, &a);
            run_step(&cpu, step, lr, true, &b);
            assert_true(a.known && a.back == 0 && a.flags == 0);
            if (fabsf(a.loss - b.loss) > 1e-4f * fabsf(b.loss))
                fail_msg("epoch %d, step %d: loss %.9g, expected %.9g", epoch, step, (double)a.loss,
                         (double)b.loss);
        }
        assert_int_equal(train_sums(&device.train, &sums[0], &sums[1], &err), 0);
        assert_int_equal(train_sums(&cpu.train, &sums[2], &sums[3], &err), 0);
        assert_true(fabs(sums[0] - sums[2]) <= 1e-4 * sums[2] && fabs(sums[1] - sums[3]) <= 1e-4 * sums[3]);
        check_evaluations(&device, &cpu, EVALUATED, 1e-4); /* two trainings drift apart by rounding */
    }
    check_state(&device, &cpu);
    close_training(&device);
    close_training(&cpu);
    assert_int_equal(fake_cudart_pieces(), 0);
}

static void it_learns_what_the_cpu_learns(void **state)
{
    (void)state;
    check_task(&(struct task){.optimizer = &optimizer_sgd, .lr = 0.01});
    check_task(&(struct task){.optimizer = &optimizer_adamw, .lr = 0.003, .decay = true, .subset = true});
    check_task(&(struct task){.optimizer = &optimizer_sgd, .lr = 0.01, .values = true, .decay = true});
}

static const struct task SGD = {.optimizer = &optimizer_sgd, .lr = 0.05};

/* Many steps are under way at once: the ring comes round, and the numbers are those of waiting for each. */
static void steps_in_flight_change_nothing(void **state)
{
    struct training hurried, patient;

    (void)state;
    open_training(&hurried, &SGD, true);
    open_training(&patient, &SGD, true);
    check_steps_in_flight(&hurried, &patient, 6, STEPS, 0.05);
}

/* The error has the step's own number, and the weights stay as they were before it. */
static void a_loss_that_is_no_number_stops_the_weights(void **state)
{
    struct training t;
    struct train_result r = {0};
    struct err err = {0};
    size_t len;

    (void)state;
    open_training(&t, &SGD, true);
    train_epoch(&t.train, 0);
    for (int step = 0; step < 3; step++)
        run_step(&t, step, 0.05, false, &r);
    assert_int_equal(train_pull(&t.train, TRAIN_READS_ALL, &err), 0);
    len = t.pipeline.model->len;
    t.pipeline.model->values[len - 1] = NAN;
    train_push(&t.train);
    run_step(&t, 3, 0.05, false, &r);
    int64_t taken = 4;
    for (int epoch = 1; epoch < 4 && !(r.flags & COLLECTIVES_NONFINITE); epoch++) {
        train_epoch(&t.train, epoch);
        for (int step = 0; step < STEPS && !(r.flags & COLLECTIVES_NONFINITE); step++, taken++)
            run_step(&t, step, 0.05, false, &r);
    }
    assert_true(r.flags & COLLECTIVES_NONFINITE);
    assert_int_equal(taken - r.back, 4);
    float before[8];
    memcpy(before, t.pipeline.model->values, sizeof(before));
    assert_int_equal(train_pull(&t.train, TRAIN_READS_ALL, &err), 0);
    assert_memory_equal(t.pipeline.model->values, before, sizeof(before));
    close_training(&t);
}

static void a_resumed_training_goes_on_with_what_it_is_given(void **state)
{
    struct training device, cpu;
    struct train_result a, b;
    struct err err = {0};
    size_t len;

    (void)state;
    open_training(&device, &SGD, true);
    open_training(&cpu, &SGD, false);
    len = cpu.pipeline.model->len * sizeof(float);
    train_epoch(&cpu.train, 0);
    for (int step = 0; step < 2; step++)
        run_step(&cpu, step, 0.05, true, &b);
    memcpy(device.pipeline.model->values, cpu.pipeline.model->values, len);
    memcpy(device.pipeline.model->buffers, cpu.pipeline.model->buffers, cpu.pipeline.model->buffers_bytes);
    memcpy(device.optim.m, cpu.optim.m, len);
    device.optim.step = cpu.optim.step;
    train_push(&device.train);
    train_epoch(&device.train, 0);
    train_skip(&device.train, 2 * BATCH);
    for (int step = 0; step < STEPS - 2; step++) {
        run_step(&device, step, 0.05, true, &a);
        run_step(&cpu, step + 2, 0.05, true, &b);
        assert_true(fabsf(a.loss - b.loss) <= 1e-5f * fabsf(b.loss));
    }
    assert_int_equal(train_pull(&device.train, TRAIN_READS_ALL, &err), 0);
    check_state(&device, &cpu);
    close_training(&device);
    close_training(&cpu);
}

static void a_device_that_fails_is_told(void **state)
{
    static const char *const functions[] = {"cudaStreamEndCapture", "cudaGraphInstantiate", "cudaGraphLaunch",
                                            "cudaStreamSynchronize"};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(functions); i++) {
        struct training t;
        struct train_result r;
        struct err err = {0};
        open_training(&t, &SGD, true);
        train_epoch(&t.train, 0);
        run_step(&t, 0, 0.05, true, &r);
        fake_cudart_fail(functions[i], 0);
        int failed = train_step(&t.train, 1, 0.05, &r, &err) || train_pull(&t.train, TRAIN_READS_ALL, &err);
        assert_int_equal(failed, 1);
        assert_int_equal(err.kind, ERR_FATAL);
        assert_non_null(strstr(err.msg, "the GPU: "));
        close_training(&t);
        assert_int_equal(fake_cudart_pieces(), 0);
    }
}

static void memory_that_is_not_there_is_told(void **state)
{
    struct training t;

    (void)state;
    open_training(&t, &SGD, true);
    assert_true(check_memory(&t, "cudaMalloc") > 20);
    close_training(&t);
    assert_int_equal(fake_cudart_pieces(), 0);
}

/* An exchange on the device, among one rank: a sum of one. */
struct exchange {
    struct device_comm comm;
    struct kctx **ctx;
    void *memory;
    int sums, waits;
    bool gone; /* a rank whose part of the sums never comes */
};

static int sum_of_one(struct device_comm *c, void *x, size_t n, enum device_type type, void *stream,
                      struct err *err)
{
    struct exchange *e = c->state;

    (void)err;
    assert_ptr_equal(x, e->memory);
    assert_ptr_equal(stream, (*e->ctx)->ops->stream(*e->ctx));
    assert_true(n > QUEUED_FLAGS);
    assert_int_equal(type, DEVICE_F32);
    e->sums++;
    return 0;
}

static void *own_buffer(struct device_comm *c, size_t bytes, int64_t timeout_ms, struct err *err)
{
    struct exchange *e = c->state;

    (void)timeout_ms;
    e->memory = device_alloc(*e->ctx, bytes, err);
    return e->memory;
}

static int waited(struct device_comm *c, void *event, const char *what, int64_t timeout_ms, struct err *err)
{
    struct exchange *e = c->state;

    assert_true(event && what && timeout_ms > 0);
    e->waits++;
    if (!e->gone)
        return 0;
    c->lost = true;
    return err_set(err, ERR_PEER, "rank 1 went away");
}

/* A training with the exchange *e. */
static void open_with(struct training *t, struct exchange *e)
{
    struct task task = SGD;

    *e = (struct exchange){
        .comm = {.world = 1, .buffer = own_buffer, .all_reduce = sum_of_one, .wait = waited, .sync = waited},
        .ctx = &t->ctx};
    e->comm.state = e;
    task.device_comm = &e->comm;
    open_training(t, &task, true);
}

/* Recorded with the step; and what a rank raises comes back once, as late for itself as for all others. */
static void an_exchange_on_the_device_is_a_part_of_the_step(void **state)
{
    struct training t, alone;
    struct exchange e;
    struct train_result r;
    struct err err = {0};
    int heard_at = -1;
    int steps = 0;

    (void)state;
    open_training(&alone, &SGD, true);
    open_with(&t, &e);
    for (int epoch = 0; epoch < 6; epoch++) {
        train_epoch(&t.train, epoch);
        train_epoch(&alone.train, epoch);
        for (int step = 0; step < STEPS; step++, steps++) {
            t.train.raise = steps == 3 ? COLLECTIVES_SAVE : 0;
            run_step(&t, step, 0.05, false, &r);
            if (r.flags) {
                assert_int_equal(r.flags, COLLECTIVES_SAVE);
                assert_int_equal(heard_at, -1);
                heard_at = steps;
            }
            run_step(&alone, step, 0.05, false, &r);
        }
    }
    assert_int_equal(heard_at, 3 + RESIDENT_LAG + 1);
    assert_int_equal(e.sums, 4); /* of two sizes, once as it is and once recorded */
    assert_true(e.waits > 0);
    assert_int_equal(train_pull(&t.train, TRAIN_READS_ALL, &err), 0);
    assert_int_equal(train_pull(&alone.train, TRAIN_READS_ALL, &err), 0);
    assert_memory_equal(t.pipeline.model->values, alone.pipeline.model->values,
                        alone.pipeline.model->len * sizeof(float));
    train_release(&t.train);
    device_free(t.ctx, e.memory);
    close_training(&t);
    close_training(&alone);
    assert_int_equal(fake_cudart_pieces(), 0);
}

/* Steps are in flight when the rank goes; what would wait for the device returns that error, and waits for nothing. */
static int what_is_told(int (*ask)(struct training *t, struct err *err))
{
    struct training t;
    struct exchange e;
    struct train_result r;
    struct err err = {0};

    open_with(&t, &e);
    train_epoch(&t.train, 0);
    for (int step = 0; step < 3; step++)
        run_step(&t, step, 0.05, false, &r);
    e.gone = true;
    fake_cudart_fail("cudaStreamSynchronize", 0);
    if (ask(&t, &err) == 0 || err.kind != ERR_PEER)
        return 1;
    int pieces = fake_cudart_pieces();
    train_release(&t.train);
    if (!e.comm.lost || fake_cudart_pieces() != pieces)
        return 2;
    return device_sync(t.ctx, &err) == 0 ? 3 : 0; /* the first that has waited for all */
}

static int ask_weights(struct training *t, struct err *err)
{
    return train_pull(&t->train, TRAIN_READS_ALL, err);
}

static int ask_sums(struct training *t, struct err *err)
{
    double own;
    double mean;

    return train_sums(&t->train, &own, &mean, err);
}

static int ask_epoch(struct training *t, struct err *err)
{
    struct train_result r;

    train_epoch(&t->train, 1);
    return train_step(&t->train, 0, 0.05, &r, err);
}

static int ask_evaluation(struct training *t, struct err *err)
{
    struct evaluate_result r;

    return evaluate(&t->train, &t->train.p.feed, EVALUATED, &r, err);
}

/* Without a request: another failure ends the run. */
static int ask_nothing(struct training *t, struct err *err)
{
    (void)t;
    return err_set(err, ERR_PEER, "rank 1 went away");
}

/* In processes of their own: what is left of a lost device ends with them. */
static void a_rank_that_is_gone_leaves_nobody_waiting(void **state)
{
    int (*const ask[])(struct training *, struct err *) = {ask_weights, ask_sums, ask_epoch, ask_evaluation,
                                                           ask_nothing};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(ask); i++) {
        int status;
        pid_t pid = fork();
        if (pid == 0)
            _exit(what_is_told(ask[i]));
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 0);
    }
}

/* Steps that the device has not taken, since a loss was no number, are not weights to be kept. */
static void weights_behind_a_bad_loss_are_refused(void **state)
{
    struct training t;
    struct train_result r;
    struct err err = {0};

    (void)state;
    open_training(&t, &SGD, true);
    train_epoch(&t.train, 0);
    run_step(&t, 0, 0.05, false, &r);
    assert_int_equal(train_pull(&t.train, TRAIN_READS_ALL, &err), 0);
    t.pipeline.model->values[t.pipeline.model->len - 1] = NAN;
    train_push(&t.train);
    run_step(&t, 1, 0.05, false, &r);
    run_step(&t, 2, 0.05, false, &r);
    assert_int_equal(r.flags & COLLECTIVES_NONFINITE, 0);
    assert_int_equal(train_pull(&t.train, TRAIN_READS_ALL, &err), -1);
    assert_int_equal(err.kind, ERR_FATAL);
    assert_non_null(strstr(err.msg, "(step 2)"));
    close_training(&t);
}

/* Time of a small net is the number of its kernels: samples, loss, parameters, record, and eight products, with bias, ReLU, its mask and
 * the bias's gradient inside. */
static void a_step_of_an_mlp_is_twelve_kernels(void **state)
{
    const struct task task = {.optimizer = &optimizer_sgd, .mlp = true};
    struct training t;
    struct train_result r;

    (void)state;
    open_training(&t, &task, true);
    train_epoch(&t.train, 0);
    for (int step = 0; step < 3; step++) { /* queued, recorded, launched */
        const unsigned long before = emulate_launches();
        run_step(&t, step, 0.01, true, &r);
        assert_int_equal(emulate_launches() - before, 12);
    }
    close_training(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_learns_what_the_cpu_learns),
        cmocka_unit_test(steps_in_flight_change_nothing),
        cmocka_unit_test(a_loss_that_is_no_number_stops_the_weights),
        cmocka_unit_test(a_resumed_training_goes_on_with_what_it_is_given),
        cmocka_unit_test(an_exchange_on_the_device_is_a_part_of_the_step),
        cmocka_unit_test(a_rank_that_is_gone_leaves_nobody_waiting),
        cmocka_unit_test(weights_behind_a_bad_loss_are_refused),
        cmocka_unit_test(a_device_that_fails_is_told),
        cmocka_unit_test(memory_that_is_not_there_is_told),
        cmocka_unit_test(a_step_of_an_mlp_is_twelve_kernels),
    };

    make_data();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
