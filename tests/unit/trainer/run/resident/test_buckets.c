/* test_buckets.c - gradients that are summed a bucket at a time beside the backward pass, on an emulated GPU: the buckets
 * are the whole gradient, from its end to its beginning, and neither too early nor too late.
 *
 * The sum over "all ranks" is twice this rank's own numbers, so it matters when it is taken: before the gradient is there it
 * is overwritten, behind the optimiser it is missed.
 */
#include "test.h"

#include "a_gpt2.h"
#include "cudart.h"
#include "kernels/cuda/cuda.h"

#include <stdlib.h>
#include <string.h>

enum {
    EPOCHS = 2,
    SUMS_MAX = 64,
    SMALL = 4096, /* bytes: a block has 13 KB of gradients */
    IN_STEP = 3   /* sums: two blocks, and the embeddings */
};

struct sum {
    float *x;
    size_t n;
};

/* sum: of all that were queued, recorded ones once. Of the first step each is waited for before more is queued, which would load
 * kernels without a deadline. */
struct exchange {
    struct device_comm comm;
    struct kctx **ctx;
    float *memory;
    size_t bytes;
    int first_step; /* sums of it */
    int sums, beside, waits;
    struct sum sum[SUMS_MAX];
};

static bool twice(void *arg)
{
    const struct sum *s = arg;

    for (size_t i = 0; i < s->n; i++)
        s->x[i] *= 2;
    return true;
}

static int all_reduce(struct device_comm *c, void *x, size_t n, enum device_type type, void *stream,
                      struct err *err)
{
    struct exchange *e = c->state;

    (void)err;
    assert_int_equal(type, DEVICE_F32);
    assert_true(e->sums < SUMS_MAX);
    if (e->sums < e->first_step)
        assert_int_equal(e->waits, e->sums);
    e->sum[e->sums] = (struct sum){x, n};
    e->beside += stream == (*e->ctx)->ops->side(*e->ctx);
    fake_stream_push(stream, twice, &e->sum[e->sums++]);
    return 0;
}

static void *buffer(struct device_comm *c, size_t bytes, int64_t timeout_ms, struct err *err)
{
    struct exchange *e = c->state;

    (void)timeout_ms;
    e->bytes = bytes;
    return e->memory = device_alloc(*e->ctx, bytes, err);
}

static int waited(struct device_comm *c, void *event, const char *what, int64_t timeout_ms, struct err *err)
{
    (void)c;
    (void)event;
    (void)what;
    (void)timeout_ms;
    (void)err;
    return 0;
}

static int synced(struct device_comm *c, void *stream, const char *what, int64_t timeout_ms, struct err *err)
{
    struct exchange *e = c->state;

    e->waits++;
    return waited(c, stream, what, timeout_ms, err);
}

/* Training behind it: weights and the exchange are what it leaves. */
static void train(struct training *t, struct exchange *e, struct task task, bool exact)
{
    struct train_result r;
    struct err err = {0};

    *e = (struct exchange){
        .comm = {.world = 1, .buffer = buffer, .all_reduce = all_reduce, .wait = waited, .sync = synced},
        .ctx = &t->ctx,
        .first_step = task.bucket_bytes == SMALL ? IN_STEP : 1};
    e->comm.state = e;
    task.device_comm = &e->comm;
    open_training(t, &task, true);
    t->train.exact = exact;
    for (int epoch = 0; epoch < EPOCHS; epoch++) {
        train_epoch(&t->train, epoch);
        for (int64_t step = 0; step < (task.items + task.batch - 1) / task.batch; step++)
            if (train_step(&t->train, step, 0.01, &r, &err))
                fail_msg("%s", err.msg);
    }
    assert_int_equal(train_pull(&t->train, TRAIN_READS_ALL, &err), 0);
}

static void end_training(struct training *t, struct exchange *e)
{
    device_free(t->ctx, e->memory);
    close_training(t);
}

/* Of a step that begins with sum i: from the end of all that is exchanged to its beginning, none small but the last. Returns
 * the next step's first. */
static int check_buckets(const struct exchange *e, int i)
{
    const float *end = e->memory + e->bytes / sizeof(float);

    for (; end != e->memory; i++) {
        assert_true(i < e->sums);
        assert_ptr_equal(e->sum[i].x + e->sum[i].n, end);
        end = e->sum[i].x;
        assert_int_equal((end - e->memory) % 64, 0);
        assert_true(end == e->memory || e->sum[i].n >= SMALL / sizeof(float));
    }
    return i;
}

static void check_task(const struct task *small)
{
    static struct exchange bucketed, whole;
    struct training t, wanted;
    struct task task = *small;

    task.bucket_bytes = 1 << 20; /* more than there is: one piece, behind the backward pass */
    train(&wanted, &whole, task, true);
    assert_int_equal(whole.beside, 0);
    task.bucket_bytes = SMALL;
    train(&t, &bucketed, task, small->micro == 1);
    assert_int_equal(bucketed.beside, bucketed.sums);
    int first = check_buckets(&bucketed, 0);
    assert_int_equal(first, IN_STEP);
    assert_true(whole.waits >= 1 && bucketed.waits >= IN_STEP);
    for (int i = first; i < bucketed.sums;)
        i = check_buckets(&bucketed, i);
    assert_memory_equal(t.pipeline.model->values, wanted.pipeline.model->values,
                        t.pipeline.model->len * sizeof(float));
    end_training(&t, &bucketed);
    end_training(&wanted, &whole);
    assert_int_equal(fake_cudart_pieces(), 0);
}

static void check_tasks(void)
{
    check_task(&(struct task){.batch = 2, .micro = 1, .items = 4, .clip = 0.5, .cublas = true});
    check_task(&(struct task){.batch = 3, .micro = 3, .items = 4, .cublas = true});
}

static void buckets_are_not_too_late(void **state)
{
    (void)state;
    check_tasks();
}

static void buckets_are_not_too_early(void **state)
{
    (void)state;
    setenv("FAKE_STREAMS", "early", 1);
    check_tasks();
    unsetenv("FAKE_STREAMS");
}

/* 0: none. */
static void none_are_none(void **state)
{
    static struct exchange e;
    struct training t;

    (void)state;
    train(&t, &e, (struct task){.batch = 4, .micro = 2, .items = 4, .cublas = true}, true);
    assert_int_equal(e.beside, 0);
    assert_int_equal(e.sums, EPOCHS); /* a step of micro-batches is not recorded around them */
    end_training(&t, &e);
    assert_int_equal(fake_cudart_pieces(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(buckets_are_not_too_late),
        cmocka_unit_test(buckets_are_not_too_early),
        cmocka_unit_test(none_are_none),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
