/* test_ranks.c - whole runs of several ranks on GPUs: they learn what one rank learns, and a rank that dies, stops or aborts
 * between steps takes the others with it, under the deadline and with the right exit status.
 *
 * Arguments: gpu_ranks.h.
 */
#include "test.h"

#include "common/contract.h"
#include "gpu_ranks.h"
#include "sanitized.h"
#include "staged_nets.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

enum { WORLD = GPU_RANKS };

static void check_same(const struct gpu_ranks_shown *want, const struct gpu_ranks_task *t, const char *what)
{
    gpu_ranks_check_within(want, t, 1e-5, what);
}

#define NCCL .backend = COLLECTIVES_NCCL
#define GLOO .backend = COLLECTIVES_GLOO

static void ranks_learn_what_one_learns(void **state)
{
    (void)state;
    gpu_ranks_check_ways((struct gpu_ranks_task){.log_interval = 1}, WORLD, 6, "two ranks");
}

/* For example a GPU that is too old. The CPU's rank would do what only two of its kind can. */
static void one_of_two_may_be_without(void **state)
{
    static const char WIDE[] = "name: wide\n"
                               "model:\n"
                               "  input: {rows: 8, cols: 8, channels: 1}\n"
                               "  layers:\n"
                               "    - flatten\n"
                               "    - {type: linear, name: hidden, out: 80}\n"
                               "    - relu\n"
                               "    - {type: linear, name: out, out: 10}\n"
                               "loss: cross_entropy\n"
                               "optimizer: {type: sgd, lr: 0.02}\n"
                               "data: {format: idx, mean: 0.5, std: 0.5}\n"
                               "defaults: {epochs: 1, batch_size: 24, log_interval: 1}\n";
    const struct gpu_ranks_task cpu = {GLOO, .world = WORLD, .model = WIDE, .no_cuda = true,
                                       .log_interval = 1};
    const struct gpu_ranks_task mixed = {GLOO, .world = WORLD, .model = WIDE, .second_on_cpu = true,
                                         .log_interval = 1};
    const struct gpu_ranks_shown want = gpu_ranks_shown_by(&cpu);

    (void)state;
    assert_true(want.n >= 3);
    check_same(&want, &mixed, "a GPU and a CPU");
}

/* Four micro-batches of a window alone, two on each of two ranks. And a gradient of 28 KB in buckets of at least 4, which is
 * three of them: the fake NCCL adds in the order of the ranks, whatever the size, and refuses ranks that request
 * different sums. */
static void a_gpt2_learns_what_it_learns_on_the_cpu(void **state)
{
    const struct gpu_ranks_task cpu = {GLOO, .world = 1, .no_cuda = true, .sequences = true,
                                       .log_interval = 1};
    const struct gpu_ranks_task alone = {GLOO, .world = 1, .sequences = true, .log_interval = 1};
    const struct gpu_ranks_task nccl = {NCCL, .world = WORLD, .sequences = true, .log_interval = 1};
    const struct gpu_ranks_task gloo = {GLOO, .world = WORLD, .sequences = true, .log_interval = 1};
    const struct gpu_ranks_shown want = gpu_ranks_shown_by(&cpu);
    struct gpu_ranks_task buckets = nccl;

    (void)state;
    assert_true(want.n >= 12);
    check_same(&want, &gloo, "a GPT-2, two ranks over gloo");
    if (SANITIZED)
        return; /* the lines are the same from here on */
    check_same(&want, &alone, "a GPT-2 on a GPU beside the CPU");
    const struct gpu_ranks_shown whole = gpu_ranks_shown_by(&nccl);
    buckets.bucket_mb = 4096.0 / 1048576;
    check_same(&want, &buckets, "a GPT-2, two ranks over NCCL, buckets");
    buckets.early = true;
    gpu_ranks_check_within(&whole, &buckets, gpu_ranks.emulated ? 0 : 1e-5, "buckets beside one piece");
}

/* bf16 rounds what grows with the batch, sample by sample; gradients of parameters, and what ranks send each other, are f32.
 * So two ranks differ from one by the order of adding alone, and by what a weight's copy makes of that: its last bit. */
static void bf16_is_the_same_on_two_ranks(void **state)
{
    struct gpu_ranks_task alone = {GLOO, .world = 1, .sequences = true, .log_interval = 1, .bf16 = true};
    struct gpu_ranks_task nccl = alone;
    const struct gpu_ranks_shown want = gpu_ranks_shown_by(&alone);

    (void)state;
    assert_true(want.n >= 12);
    nccl.backend = COLLECTIVES_NCCL;
    nccl.world = WORLD;
    nccl.bucket_mb = 4096.0 / 1048576;
    gpu_ranks_check_within(&want, &nccl, 1e-3, "bf16, two ranks over NCCL");
}

/* Nobody requests a step's loss, so steps are in flight; the evaluation reports their error. */
static void steps_in_flight_too(void **state)
{
    const struct gpu_ranks_task cpu = {GLOO, .world = 1, .no_cuda = true, .epochs = 5};
    const struct gpu_ranks_task nccl = {NCCL, .world = WORLD, .epochs = 5};

    (void)state;
    const struct gpu_ranks_shown want = gpu_ranks_shown_by(&cpu);
    assert_true(want.n >= 1);
    check_same(&want, &nccl, "two ranks over NCCL, steps in flight");
}

/* Weights that somebody else has trained are where the steps are. */
static void weights_to_begin_with_reach_the_gpu(void **state)
{
    char path[SMALL_DATA_DIR_BYTES + 32];

    (void)state;
    snprintf(path, sizeof(path), "%s/weights.safetensors", gpu_ranks.data);
    const struct gpu_ranks_task make = {GLOO, .world = 1, .no_cuda = true, .log_interval = 1,
                                        .save_path = path};
    const struct gpu_ranks_task cpu = {GLOO, .world = 1, .no_cuda = true, .log_interval = 1,
                                       .init_from = path};
    const struct gpu_ranks_task gpu = {GLOO, .world = 1, .log_interval = 1, .init_from = path};
    assert_true(gpu_ranks_shown_by(&make).n >= 6);
    const struct gpu_ranks_shown want = gpu_ranks_shown_by(&cpu);
    check_same(&want, &gpu, "weights of another run");
    unlink(path);
}

/* Of a model in stages, rank 1 is the one in the middle. */
static void a_rank_that_dies_or_stops_ends_the_others(void **state)
{
    (void)state;
    gpu_ranks_check_lost((struct gpu_ranks_task){.world = WORLD});
    gpu_ranks_check_signal((struct gpu_ranks_task){GLOO, .world = WORLD}, SIGSTOP, EXIT_CODE_RETRYABLE);
    gpu_ranks_check_lost((struct gpu_ranks_task){.world = STAGES, .model = THREE_STAGES});
}

/* An NCCL that fails in the launch of a recorded step: call 0 is the gradient's first sum, 1 is queued as it is, 6 is a
 * recorded one. Behind 2 stands a step of a size that comes for the first time. Of two stages call 0 is the first sum of loss and
 * flags, and a step of two micro-batches is two sends, two receives and a sum. Who meets a deadline may take the other along,
 * whose own is a little later. */
static void an_nccl_that_fails_between_launches_ends_all(void **state)
{
    static const struct {
        const char *fault, *model;
        int64_t log_interval, timeout_s;
        int root,
            code; /* of rank `root`, whose own fault it is, the others' is 140; root -1: of one of them at least */
    } rows[] = {
        {"stall:1:6", NULL, 0, GPU_RANKS_SOON_S, -1, EXIT_CODE_RETRYABLE},
        {"stall:1:2", NULL, 0, GPU_RANKS_SOON_S, -1, EXIT_CODE_RETRYABLE},
        {"hang:1:6", NULL, 1, GPU_RANKS_SOON_S, -1, EXIT_CODE_RETRYABLE},
        {"system:1:6", NULL, 0, GPU_RANKS_LATE_S, 1, EXIT_CODE_RETRYABLE},
        {"remote:1:6", NULL, 1, GPU_RANKS_LATE_S, 1, EXIT_CODE_PEER_LOST},
        {"stall:1:2", TWO_STAGES, 0, GPU_RANKS_SOON_S, -1,
         EXIT_CODE_RETRYABLE}, /* the first step, as it is queued */
        {"hang:0:19", TWO_STAGES, 0, GPU_RANKS_SOON_S, -1, EXIT_CODE_RETRYABLE}, /* a recorded one */
        {"system:1:19", TWO_STAGES, 0, GPU_RANKS_LATE_S, 1, EXIT_CODE_RETRYABLE},
        {"remote:0:12", TWO_STAGES, 1, GPU_RANKS_LATE_S, 0, EXIT_CODE_PEER_LOST},
    };

    (void)state;
    if (!gpu_ranks.emulated)
        skip();
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const struct gpu_ranks_task t = {NCCL,
                                         .world = WORLD,
                                         .model = rows[i].model,
                                         .log_interval = rows[i].log_interval,
                                         .epochs = 1000000,
                                         .timeout_s = rows[i].timeout_s,
                                         .fault = rows[i].fault};
        struct gpu_ranks r = gpu_ranks_start(&t);
        gpu_ranks_read(&r);
        bool found = false;
        for (int k = 0; k < WORLD; k++) {
            const int code = gpu_ranks_ended(r.pid[k]);
            const bool may = (k == rows[i].root || rows[i].root < 0) && code == rows[i].code;
            found = found || may;
            if (!may && code != EXIT_CODE_PEER_LOST)
                fail_msg("%s: rank %d ended with %d", rows[i].fault, k, code);
        }
        if (!found)
            fail_msg("%s: no rank ended with %d", rows[i].fault, rows[i].code);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks_learn_what_one_learns),
        cmocka_unit_test(one_of_two_may_be_without),
        cmocka_unit_test(a_gpt2_learns_what_it_learns_on_the_cpu),
        cmocka_unit_test(bf16_is_the_same_on_two_ranks),
        cmocka_unit_test(steps_in_flight_too),
        cmocka_unit_test(weights_to_begin_with_reach_the_gpu),
        cmocka_unit_test(a_rank_that_dies_or_stops_ends_the_others),
        cmocka_unit_test(an_nccl_that_fails_between_launches_ends_all),
    };
    int none = gpu_ranks_find(argc, argv);

    return none ? none : cmocka_run_group_tests(tests, gpu_ranks_make, gpu_ranks_unmake);
}
