/* test_stages.c - whole runs of models in stages on GPUs: they learn what one rank learns, to the bit where nothing but the
 * stages differs, evaluate, save and continue as it does.
 *
 * Arguments: gpu_ranks.h.
 */
#include "test.h"

#include "common/arena.h"
#include "common/buf.h"
#include "common/fsutil.h"
#include "gpu_ranks.h"
#include "staged_nets.h"
#include "trainer/presets/presets.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NCCL .backend = COLLECTIVES_NCCL
#define GLOO .backend = COLLECTIVES_GLOO

enum { PATH_BYTES = SMALL_DATA_DIR_BYTES + 32 };

static char *path_of(char path[static PATH_BYTES], const char *name)
{
    snprintf(path, PATH_BYTES, "%s/%s", gpu_ranks.data, name);
    return path;
}

/* A run leaves its weights in a file of that name. */
static struct gpu_ranks_shown train(struct gpu_ranks_task t, const char *name)
{
    char path[PATH_BYTES];

    t.save_path = path_of(path, name);
    return gpu_ranks_shown_by(&t);
}

static void forget(const char *name)
{
    char path[PATH_BYTES];

    unlink(path_of(path, name));
}

/* Nothing but the stages differs: not a bit of the weights does. A real GPU's products may depend on where their operands lie. */
static void check_weights(const char *one, const char *other)
{
    cleanup_buf struct buf x = BUF_INIT(1 << 20);
    cleanup_buf struct buf y = BUF_INIT(1 << 20);
    char path[PATH_BYTES];
    struct err err = {0};

    if (fs_read(path_of(path, one), &x, &err) || fs_read(path_of(path, other), &y, &err))
        fail_msg("%s", err.msg);
    assert_true(x.len > 0);
    assert_int_equal(x.len, y.len);
    if (gpu_ranks.emulated && memcmp(x.data, y.data, x.len) != 0)
        fail_msg("%s is not %s", other, one);
}

static void stages_learn_what_one_learns(void **state)
{
    const struct gpu_ranks_task cpu = {GLOO, .world = 1, .model = THREE_STAGES, .no_cuda = true,
                                       .log_interval = 1};
    const struct gpu_ranks_task alone = {GLOO, .world = 1, .model = THREE_STAGES, .log_interval = 1};
    const struct gpu_ranks_task nccl = {NCCL, .world = STAGES, .model = THREE_STAGES, .log_interval = 1};
    const struct gpu_ranks_task gloo = {GLOO, .world = STAGES, .model = THREE_STAGES, .log_interval = 1};
    const struct gpu_ranks_shown want = gpu_ranks_shown_by(&cpu);
    const struct gpu_ranks_shown one = train(alone, "alone.safetensors");

    (void)state;
    assert_true(want.n >= 10);
    gpu_ranks_check_shown(&want, &one, 1e-5, "all stages on a GPU beside the CPU");
    const struct gpu_ranks_shown over_nccl = train(nccl, "stages.safetensors");
    gpu_ranks_check_shown(&want, &over_nccl, 1e-5, "three stages over NCCL");
    check_weights("alone.safetensors", "stages.safetensors");
    const struct gpu_ranks_shown over_gloo = train(gloo, "stages.safetensors");
    gpu_ranks_check_shown(&want, &over_gloo, 1e-5, "three stages over gloo");
    check_weights("alone.safetensors", "stages.safetensors");
    forget("alone.safetensors");
    forget("stages.safetensors");
}

static void two_stages_learn_what_one_learns(void **state)
{
    (void)state;
    gpu_ranks_check_ways((struct gpu_ranks_task){.model = TWO_STAGES, .log_interval = 1}, 2, 9, "two stages");
}

/* Nobody requests a step's loss, and the evaluations report the steps' errors. */
static void steps_in_flight_too(void **state)
{
    struct gpu_ranks_task t = {GLOO, .world = 1, .model = TWO_STAGES, .no_cuda = true, .epochs = 6};
    const struct gpu_ranks_shown want = gpu_ranks_shown_by(&t);

    (void)state;
    assert_true(want.n >= 6);
    t = (struct gpu_ranks_task){NCCL, .world = 2, .model = TWO_STAGES, .epochs = 6, .early = true};
    gpu_ranks_check_within(&want, &t, 1e-5, "steps in flight");
}

/* The norm that is bounded is the whole model's. */
static void a_bounded_norm_is_one_over_all_stages(void **state)
{
    const struct gpu_ranks_task free_of_bounds = {GLOO, .world = 1, .model = TWO_STAGES, .no_cuda = true,
                                                  .log_interval = 1};
    const struct gpu_ranks_shown other = gpu_ranks_shown_by(&free_of_bounds);
    const struct gpu_ranks_shown want =
        gpu_ranks_check_ways((struct gpu_ranks_task){.model = TWO_STAGES, .log_interval = 1, .clip = 0.3}, 2,
                             9, "two stages, bounded");

    (void)state;
    assert_int_equal(want.n, other.n);
    assert_true(fabs(want.loss[want.n - 1] - other.loss[want.n - 1]) > 1e-3 * other.loss[want.n - 1]);
}

static void the_preset_trains(void **state)
{
    const char *text = NULL;

    (void)state;
    for (size_t i = 0; presets[i].name; i++)
        if (strcmp(presets[i].name, "pipeline") == 0)
            text = presets[i].text;
    assert_non_null(text);
    struct gpu_ranks_task t = {GLOO,          .world = 1, .model = text, .no_cuda = true, .log_interval = 1,
                               .max_steps = 3};
    const struct gpu_ranks_shown want = gpu_ranks_shown_by(&t);
    assert_true(want.n >= 3);
    t.backend = COLLECTIVES_NCCL;
    t.world = STAGES;
    t.no_cuda = false;
    gpu_ranks_check_within(&want, &t, 1e-5, "the preset over NCCL");
}

/* From a checkpoint in the middle of an epoch, which any number of stages may write and read. */
static void a_run_goes_on_from_its_checkpoint(void **state)
{
    const struct gpu_ranks_task alone = {GLOO, .world = 1, .model = THREE_STAGES, .epochs = 2};
    const struct gpu_ranks_task stages = {NCCL, .world = STAGES, .model = THREE_STAGES, .epochs = 2};
    const struct gpu_ranks_task ways[][2] = {{stages, stages}, {stages, alone}, {alone, stages}};
    char path[PATH_BYTES];
    cleanup_arena struct arena arena = {0};

    (void)state;
    train(alone, "alone.safetensors");
    path_of(path, "staged");
    for (size_t i = 0; i < ARRAY_LEN(ways); i++) {
        struct gpu_ranks_task first = ways[i][0], then = ways[i][1];
        first.checkpoints = then.checkpoints = path;
        first.max_steps = 7;
        train(first, "stages.safetensors");
        train(then, "stages.safetensors");
        check_weights("alone.safetensors", "stages.safetensors");
        assert_int_equal(system(arena_printf(&arena, "rm -r %s", path)), 0);
    }
    forget("alone.safetensors");
    forget("stages.safetensors");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stages_learn_what_one_learns),
        cmocka_unit_test(two_stages_learn_what_one_learns),
        cmocka_unit_test(steps_in_flight_too),
        cmocka_unit_test(a_bounded_norm_is_one_over_all_stages),
        cmocka_unit_test(the_preset_trains),
        cmocka_unit_test(a_run_goes_on_from_its_checkpoint),
    };
    int none = gpu_ranks_find(argc, argv);

    return none ? none : cmocka_run_group_tests(tests, gpu_ranks_make, gpu_ranks_unmake);
}
