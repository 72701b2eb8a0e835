/* test_train.c - the step among real processes: same result at any number of ranks, same bits again, stopping
 * together, in stages as well, no allocation. */
#include "test.h"

#include "../training.h"
#include "sanitized.h"

#include <math.h>
#include <signal.h>
#include <string.h>

#define COUNTS_ALLOCATIONS !SANITIZED

#if COUNTS_ALLOCATIONS
extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t n, size_t size);
extern void *__libc_memalign(size_t align, size_t size);

void *malloc(size_t size)
{
    training_allocations++;
    return __libc_malloc(size);
}

void *calloc(size_t n, size_t size)
{
    training_allocations++;
    return __libc_calloc(n, size);
}

void *aligned_alloc(size_t align, size_t size)
{
    training_allocations++;
    return __libc_memalign(align, size);
}
#endif

static struct training usual(int64_t batch)
{
    struct training task = training_usual(0, batch, 1);

    task.items = TRAINING_ITEMS;
    task.epochs = 3;
    task.lr = 0.3;
    return task;
}

/* All ranks leave an evaluation before its next chunk, whichever of them got the signal. */
static void an_evaluation_stops_within_a_chunk(void **state)
{
    (void)state;
    for (int world = 1; world <= 3; world++) {
        struct training task = usual(4);
        task.epochs = 0;
        task.evaluate_stop = 3;
        task.stop_rank = world - 1;
        struct training_shared *s = training_run(world, task);
        for (int r = 0; r < world; r++) {
            assert_int_equal(s->trace[r].evaluate_stop, COLLECTIVES_STOP_TERM);
            assert_int_equal(s->trace[r].evaluate_asked, 4);
        }
        training_free(s);
    }
}

static double distance(const struct training_trace *a, const struct training_trace *b)
{
    double error = 0;
    double square = 0;

    for (size_t i = 0; i < a->weights; i++) {
        double d = (double)a->end[i] - (double)b->end[i];
        error += d * d;
        square += (double)a->end[i] * (double)a->end[i];
    }
    return sqrt(error / square);
}

/* A global batch of 24, by 1, 2, 3 and 4 ranks. */
static void check_together(bool dropout)
{
    struct training task = usual(24);

    task.dropout = dropout;
    struct training_shared *one = training_run(1, task);

    assert_int_equal(one->trace[0].steps, 12);
    assert_true(dropout || one->trace[0].loss[11] < one->trace[0].loss[0] - 0.1f);
    for (int world = 2; world <= 4; world++) {
        task.batch = 24 / world;
        struct training_shared *many = training_run(world, task);
        for (int r = 0; r < world; r++) {
            assert_int_equal(many->trace[r].steps, 12);
            for (int i = 0; i < 12; i++)
                assert_true(fabsf(many->trace[r].loss[i] - one->trace[0].loss[i]) <=
                            2e-6f * one->trace[0].loss[i]);
            assert_true(distance(&one->trace[0], &many->trace[r]) < 2e-6);
            assert_memory_equal(many->trace[r].end, many->trace[0].end, sizeof(many->trace[0].end));
        }
        training_free(many);
    }
    training_free(one);
}

static void ranks_together_are_one_process(void **state)
{
    (void)state;
    check_together(false);
}

/* Also with dropout: what is drawn for a sample does not depend on who draws it. */
static void dropout_is_the_same_on_any_rank(void **state)
{
    (void)state;
    check_together(true);
}

/* The same samples each step and a rate of 0: only what is dropped can change the loss. */
static void each_step_drops_others(void **state)
{
    (void)state;
    struct training task = usual(TRAINING_ITEMS);

    task.lr = 0;
    task.dropout = true;
    struct training_shared *s = training_run(1, task);
    const float *loss = s->trace[0].loss;
    assert_int_equal(s->trace[0].steps, 3);
    assert_true(fabsf(loss[0] - loss[1]) > 1e-4f && fabsf(loss[1] - loss[2]) > 1e-4f);
    training_free(s);
}

/* Each rank keeps its own statistics while it trains; who evaluates does it by rank 0's. */
static void running_statistics_are_those_of_rank_0(void **state)
{
    (void)state;
    struct training task = usual(8);

    task.norm = true;
    struct training_shared *s = training_run(3, task);
    assert_true(s->trace[0].buffers > 0);
    for (int r = 0; r < 3; r++) {
        assert_memory_equal(s->trace[r].end, s->trace[0].end, sizeof(s->trace[0].end));
        assert_memory_equal(s->trace[r].shown, s->trace[0].own, s->trace[0].buffers);
        if (r)
            assert_true(memcmp(s->trace[r].own, s->trace[0].own, s->trace[0].buffers) != 0);
    }
    training_free(s);
}

static void a_repeat_has_the_same_bits(void **state)
{
    (void)state;
    for (int world = 1; world <= 3; world += 2) {
        struct training task = usual(8);
        task.optimizer = &optimizer_adam;
        task.lr = 0.01;
        task.wide = world > 1 ? 128 : 0;
        struct training_shared *a = training_run(world, task);
        struct training_shared *b = training_run(world, task);
        for (int r = 0; r < world; r++)
            assert_memory_equal(&a->trace[r], &b->trace[r], sizeof(a->trace[r]));
        assert_true(a->trace[0].steps > 0);
        training_free(a);
        training_free(b);
    }
}

/* Any of the ranks, or of the stages. */
static void a_signal_stops_all_after_the_same_step(void **state)
{
    static const struct {
        int signal;
        uint32_t flag;
    } cases[] = {{SIGTERM, COLLECTIVES_STOP_TERM}, {SIGINT, COLLECTIVES_STOP_INT}};

    (void)state;
    for (int stages = 0; stages <= 3; stages += 3)
        for (int i = 0; i < 2 * 3; i++) {
            struct training task = training_usual(stages, 8, 4);
            task.stop_rank = i / 2;
            task.stop_step = 2;
            task.stop_signal = cases[i % 2].signal;
            training_expect(3, task, 3, cases[i % 2].flag);
        }
}

static void a_loss_that_is_not_finite_stops_all(void **state)
{
    (void)state;
    for (int stages = 0; stages <= 3; stages += 3)
        for (int rank = 0; rank < 3; rank++) {
            struct training task = training_usual(stages, 8, 2);
            task.poison_rank = rank;
            training_expect(3, task, 3, COLLECTIVES_NONFINITE);
        }
}

static void a_step_allocates_nothing(void **state)
{
    (void)state;
    if (!COUNTS_ALLOCATIONS)
        skip();
    for (int world = 1; world <= 3; world++) {
        struct training task = usual(8);
        task.wide = world == 2 ? 128 : 0; /* so many weights that they are summed in place */
        struct training_shared *s = training_run(world, task);
        assert_true(training_allocations > 0);
        assert_int_equal(s->trace[0].allocations, 0);
        assert_int_equal(s->trace[world - 1].allocations, 0);
        training_free(s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks_together_are_one_process),
        cmocka_unit_test(dropout_is_the_same_on_any_rank),
        cmocka_unit_test(an_evaluation_stops_within_a_chunk),
        cmocka_unit_test(each_step_drops_others),
        cmocka_unit_test(running_statistics_are_those_of_rank_0),
        cmocka_unit_test(a_repeat_has_the_same_bits),
        cmocka_unit_test(a_signal_stops_all_after_the_same_step),
        cmocka_unit_test(a_loss_that_is_not_finite_stops_all),
        cmocka_unit_test(a_step_allocates_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
