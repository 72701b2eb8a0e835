/* test_zero.c - whole runs of several ranks on GPUs whose optimiser's state is shared out (--zero_stage 1): they learn what
 * ranks with all of it learn, to the bit where sums are taken in one order, and write the same checkpoints.
 *
 * Under a sanitizer each test stops once every line has run: what follows runs the same lines for other bits.
 * Arguments: gpu_ranks.h.
 */
#include "test.h"

#include "common/fsutil.h"
#include "gpu_ranks.h"
#include "sanitized.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TWO = 2, FOUR = 4, FEW = 3, HALF_WAY = 4, NAME_BYTES = SMALL_DATA_DIR_BYTES + 64 };

static const double NEAR = 1e-6, NEAR_THE_CPU = 1e-5, NEAR_IN_BF16 = 1e-3;

#define NCCL .backend = COLLECTIVES_NCCL
#define GLOO .backend = COLLECTIVES_GLOO

static void name_in(char path[NAME_BYTES], const char *name)
{
    snprintf(path, NAME_BYTES, "%s/%s", gpu_ranks.data, name);
}

static void remove_all(const char *path)
{
    char command[NAME_BYTES + 16];

    snprintf(command, sizeof(command), "rm -rf %s", path);
    assert_int_equal(system(command), 0);
}

static void check_same_file(const char *a, const char *b, const char *what)
{
    cleanup_buf struct buf one = BUF_INIT(1 << 20);
    cleanup_buf struct buf other = BUF_INIT(1 << 20);
    struct err err = {0};

    if (fs_read(a, &one, &err) || fs_read(b, &other, &err))
        fail_msg("%s", err.msg);
    if (one.len != other.len || memcmp(one.data, other.data, one.len) != 0)
        fail_msg("%s: %s and %s differ", what, a, b);
}

/* The same run, the state in one piece on every rank and in parts. NCCL's own order of sums is another for another call, so
 * only of the pretended one bits are asked; a copy in bf16 may be another for it, by its last bit. */
static void check_parts(struct gpu_ranks_task t, const char *what)
{
    char whole[NAME_BYTES], parts[NAME_BYTES];

    name_in(whole, "whole.safetensors");
    name_in(parts, "parts.safetensors");
    t.log_interval = 1;
    t.save_path = whole;
    const struct gpu_ranks_shown want = gpu_ranks_shown_by(&t);
    assert_true(want.n >= FEW);
    t.zero = true;
    t.save_path = parts;
    gpu_ranks_check_within(&want, &t, t.bf16 && !gpu_ranks.emulated ? NEAR_IN_BF16 : NEAR, what);
    if (gpu_ranks.emulated)
        check_same_file(whole, parts, what);
    unlink(whole);
    unlink(parts);
}

static void parts_change_no_bit(void **state)
{
    (void)state;
    check_parts((struct gpu_ranks_task){NCCL, .world = TWO}, "two ranks over NCCL");
    check_parts((struct gpu_ranks_task){GLOO, .world = TWO, .clip = 0.5}, "two ranks over gloo, bounded");
    if (SANITIZED)
        return;
    check_parts((struct gpu_ranks_task){GLOO, .world = TWO}, "two ranks over gloo");
    check_parts((struct gpu_ranks_task){NCCL, .world = FOUR, .clip = 0.5}, "four ranks over NCCL, bounded");
    check_parts((struct gpu_ranks_task){GLOO, .world = FOUR, .clip = 0.5}, "four ranks over gloo, bounded");
}

#define GPT2 .sequences = true, .max_steps = FEW

/* Two ranks take two micro-batches each, four one: a step is recorded in part, and whole. */
static void nor_do_they_of_a_gpt2(void **state)
{
    (void)state;
    check_parts((struct gpu_ranks_task){GLOO, GPT2, .world = TWO}, "a GPT-2 over gloo");
    if (SANITIZED)
        return;
    check_parts((struct gpu_ranks_task){NCCL, GPT2, .world = FOUR}, "a GPT-2 on four ranks");
}

static void nor_do_they_in_bf16(void **state)
{
    (void)state;
    check_parts((struct gpu_ranks_task){GLOO, GPT2, .world = TWO, .bf16 = true, .by_chance = true},
                "in bf16 by chance over gloo");
    if (SANITIZED)
        return;
    check_parts((struct gpu_ranks_task){NCCL, GPT2, .world = TWO, .bf16 = true}, "in bf16 over NCCL");
    check_parts((struct gpu_ranks_task){NCCL, GPT2, .world = FOUR, .bf16 = true, .by_chance = true},
                "in bf16 by chance on four ranks");
}

/* Weights pass through memory for gradients of activations, of which there is hardly any. */
static void nor_do_they_of_the_least_there_is(void **state)
{
    static const char LEAST[] = "name: least\n"
                                "model:\n"
                                "  gpt2: {vocab: 31, block_size: 1, n_layer: 1, n_head: 1, n_embd: 1}\n"
                                "loss: cross_entropy\n"
                                "optimizer: {type: adamw, lr: 0.006}\n"
                                "data: {format: tokens, train: gpt2.bin, shuffle: false}\n"
                                "defaults: {epochs: 1, batch_size: 1}\n";

    (void)state;
    check_parts((struct gpu_ranks_task){NCCL, GPT2, .world = TWO, .bf16 = true, .model = LEAST}, "the least");
}

static void they_learn_what_the_cpu_learns_in_parts(void **state)
{
    const struct gpu_ranks_task net = {GLOO,        .world = TWO,     .zero = true, .no_cuda = true,
                                       .clip = 0.5, .log_interval = 1};
    const struct gpu_ranks_task gpt2 = {
        GLOO, .world = TWO, .zero = true, .no_cuda = true, .sequences = true, .log_interval = 1};
    const struct gpu_ranks_shown want = gpu_ranks_shown_by(&net), want_gpt2 = gpu_ranks_shown_by(&gpt2);
    struct gpu_ranks_task on_gpus = net;

    (void)state;
    assert_true(want.n >= 6 && want_gpt2.n >= 12);
    on_gpus.no_cuda = false;
    on_gpus.backend = COLLECTIVES_NCCL;
    gpu_ranks_check_within(&want, &on_gpus, NEAR_THE_CPU, "a net");
    on_gpus.sequences = true;
    on_gpus.clip = 0;
    gpu_ranks_check_within(&want_gpt2, &on_gpus, NEAR_THE_CPU, "a GPT-2");
}

/* Nobody asks for a step's loss, so steps are in flight. */
static void steps_in_flight_too(void **state)
{
    const struct gpu_ranks_task cpu = {GLOO, .world = 1, .no_cuda = true, .epochs = 5};
    const struct gpu_ranks_task nccl = {NCCL, .world = TWO, .zero = true, .epochs = 5};
    const struct gpu_ranks_shown want = gpu_ranks_shown_by(&cpu);

    (void)state;
    assert_true(want.n >= 1);
    gpu_ranks_check_within(&want, &nccl, NEAR_THE_CPU, "steps in flight");
}

/* What a checkpoint of ranks with parts holds is what one of ranks without holds, to the byte. */
static void checkpoints_are_the_same_files(void **state)
{
    static const char *const files[] = {"model.safetensors", "state.pt"};
    char whole[NAME_BYTES], parts[NAME_BYTES], path[2][NAME_BYTES + 64];

    (void)state;
    if (!gpu_ranks.emulated || SANITIZED)
        skip();
    name_in(whole, "whole");
    name_in(parts, "parts");
    struct gpu_ranks_task t = {NCCL,         .world = FOUR,         .sequences = true,
                               .bf16 = true, .max_steps = HALF_WAY, .checkpoints = whole};
    assert_true(gpu_ranks_shown_by(&t).n >= 1);
    t.zero = true;
    t.checkpoints = parts;
    assert_true(gpu_ranks_shown_by(&t).n >= 1);
    for (size_t i = 0; i < ARRAY_LEN(files); i++) {
        snprintf(path[0], sizeof(path[0]), "%s/step-%010d/%s", whole, HALF_WAY, files[i]);
        snprintf(path[1], sizeof(path[1]), "%s/step-%010d/%s", parts, HALF_WAY, files[i]);
        check_same_file(path[0], path[1], "a checkpoint");
    }
    remove_all(whole);
    remove_all(parts);
}

/* The first half of a run by some ranks, the rest by others: the losses of one rank on the CPU that was never interrupted. */
static void check_relay(struct gpu_ranks_task first, struct gpu_ranks_task then, const char *what)
{
    const struct gpu_ranks_task alone = {GLOO, .world = 1, .no_cuda = true, .sequences = true,
                                         .log_interval = 1};
    char folder[NAME_BYTES];

    name_in(folder, "relay");
    first.sequences = then.sequences = true;
    first.log_interval = then.log_interval = 1;
    first.checkpoints = then.checkpoints = folder;
    first.max_steps = HALF_WAY;
    const struct gpu_ranks_shown want = gpu_ranks_shown_by(&alone);
    const struct gpu_ranks_shown half = gpu_ranks_shown_by(&first);
    assert_true(half.n >= HALF_WAY && half.n < want.n);
    const struct gpu_ranks_shown rest = gpu_ranks_shown_by(&then);
    assert_int_equal(rest.n, want.n - HALF_WAY); /* it went on */
    for (int i = 0; i < rest.n; i++)
        if (!(fabs(rest.loss[i] - want.loss[HALF_WAY + i]) <= NEAR_THE_CPU * want.loss[HALF_WAY + i]))
            fail_msg("%s: loss %d is %.9g, expected %.9g", what, HALF_WAY + i, rest.loss[i],
                     want.loss[HALF_WAY + i]);
    remove_all(folder);
}

static void others_go_on_where_they_stopped(void **state)
{
    const struct gpu_ranks_task four = {NCCL, .world = FOUR, .zero = true};
    const struct gpu_ranks_task two = {NCCL, .world = TWO, .zero = true};
    const struct gpu_ranks_task two_without = {NCCL, .world = TWO};
    const struct gpu_ranks_task gloo = {GLOO, .world = TWO, .zero = true};
    const struct gpu_ranks_task cpus = {GLOO, .world = FOUR, .zero = true, .no_cuda = true};

    (void)state;
    check_relay(cpus, two, "four CPUs with parts, then two GPUs");
    if (SANITIZED)
        return;
    check_relay(four, two_without, "four with parts, then two without");
    check_relay(two_without, four, "two without, then four with parts");
    check_relay(gloo, cpus, "two GPUs over gloo, then four CPUs");
}

/* Copies by chance of weights that no rank has all of; and what every step shows of those on the way. */
static void a_resumed_run_gives_the_same_bits(void **state)
{
    char whole[NAME_BYTES], rest[NAME_BYTES], folder[NAME_BYTES], logs[NAME_BYTES];

    (void)state;
    name_in(whole, "whole.safetensors");
    name_in(rest, "rest.safetensors");
    name_in(folder, "resumed");
    name_in(logs, "logs");
    struct gpu_ranks_task t = {NCCL, GPT2, .world = TWO, .zero = true, .bf16 = true, .by_chance = true};
    t.log_interval = 1;
    t.max_steps = HALF_WAY + 1;
    t.save_path = whole;
    const int all = gpu_ranks_shown_by(&t).n;
    t.checkpoints = folder;
    t.max_steps = HALF_WAY;
    t.save_path = rest;
    assert_true(gpu_ranks_shown_by(&t).n > 0);
    t.max_steps = HALF_WAY + 1;
    t.log_dir = logs;
    assert_int_equal(gpu_ranks_shown_by(&t).n, all - HALF_WAY); /* it went on */
    if (gpu_ranks.emulated)
        check_same_file(whole, rest, "resumed");
    unlink(whole);
    unlink(rest);
    remove_all(folder);
    remove_all(logs);
}

/* Weights are had by all ranks together, and so they are where one alone has been told what to do with them. */
static void what_one_rank_keeps_all_bring(void **state)
{
    char whole[NAME_BYTES], alone[NAME_BYTES], logs[NAME_BYTES];

    (void)state;
    name_in(whole, "whole.safetensors");
    name_in(alone, "alone.safetensors");
    name_in(logs, "logs");
    struct gpu_ranks_task t = {NCCL, GPT2, .world = TWO, .zero = true, .bf16 = true, .log_interval = 1};
    t.save_path = whole;
    const struct gpu_ranks_shown want = gpu_ranks_shown_by(&t);
    t.save_path = alone;
    t.log_dir = logs;
    t.first_keeps = true;
    gpu_ranks_check_within(&want, &t, NEAR, "the first keeps weights");
    if (gpu_ranks.emulated)
        check_same_file(whole, alone, "the first keeps weights");
    unlink(whole);
    unlink(alone);
    remove_all(logs);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_change_no_bit),
        cmocka_unit_test(nor_do_they_of_a_gpt2),
        cmocka_unit_test(nor_do_they_in_bf16),
        cmocka_unit_test(nor_do_they_of_the_least_there_is),
        cmocka_unit_test(they_learn_what_the_cpu_learns_in_parts),
        cmocka_unit_test(steps_in_flight_too),
        cmocka_unit_test(checkpoints_are_the_same_files),
        cmocka_unit_test(others_go_on_where_they_stopped),
        cmocka_unit_test(a_resumed_run_gives_the_same_bits),
        cmocka_unit_test(what_one_rank_keeps_all_bring),
    };
    int none = gpu_ranks_find(argc, argv);

    return none ? none : cmocka_run_group_tests(tests, gpu_ranks_make, gpu_ranks_unmake);
}
