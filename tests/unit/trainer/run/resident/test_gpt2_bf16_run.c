/* test_gpt2_bf16_run.c - GPT-2 trained in bf16 on a GPU or an emulated one: losses beside those of PyTorch's autocast
 * (tests/golden/torch/gpt2_bf16.py), and runs that continue from a checkpoint, which must give the bits of runs that were never
 * interrupted.
 */
#include "test.h"

#include "../../gpt2_golden.h"
#include "a_gpu.h"
#include "common/fsutil.h"
#include "kernels/device.h"
#include "sanitized.h"
#include "trainer/run/run.h"
#include "trainer/run/session.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Under a sanitizer the run is shorter, for what else it finds. */
enum { RUNS = 8, RUN = SANITIZED ? 1 : RUNS, STEPS = 10, STOP_AT = 3 };

/* How much farther from f32 than autocast the losses may be, over all runs: orders of the samples one by one give 0.8 to 2.1. */
static const double MORE_THAN_AUTOCAST = SANITIZED ? 2.5 : 1.5;

static const char *plugins; /* the folder of libtk_cuda.so */

static char *no_environment(const char *name)
{
    (void)name;
    return NULL;
}

static struct run_env env_of(FILE *out)
{
    return (struct run_env){
        .get = no_environment, .clock = clock_system(), .out = out, .gpu = {.dir = plugins}};
}

static void config_of(struct golden *g, struct config *cfg)
{
    golden_config(g, golden_bf16_yaml, cfg);
    cfg->backend = COLLECTIVES_NCCL; /* one rank: no NCCL, but a GPU */
    cfg->precision = CONFIG_PRECISION_AUTO;
}

/* The losses of a training with this cfg. */
static void losses_of(const struct config *cfg, int steps, float *loss)
{
    struct err err = {0};

    cleanup_fclose FILE *out = fopen("/dev/null", "w");
    struct run_env env = env_of(out);
    cleanup_session struct session s;
    if (session_open(&s, cfg, &env, &err))
        fail_msg("%s", err.msg);
    assert_int_equal(device_element(s.ctx), ELEMENT_BF16);
    const struct schedule_spec schedule = optim_schedule(&cfg->schedule, 1, STEPS);
    train_epoch(&s.train, 0);
    s.train.exact = true;
    for (int step = 0; step < steps; step++) {
        struct train_result r;
        double lr = optim_rate(&cfg->optimizer, &schedule, 1, 1, step);
        if (train_step(&s.train, step, lr, &r, &err))
            fail_msg("%s", err.msg);
        assert_int_equal(r.back, 0);
        loss[step] = r.loss;
    }
}

static void losses_are_as_near_as_autocasts(void **state)
{
    struct golden g;
    float want[RUNS][STEPS], got[RUNS][STEPS];

    (void)state;
    golden_open(&g, "gpt2_bf16.safetensors");
    golden_take(&g, "losses", *want, (size_t)RUNS * STEPS);
    const double autocast = golden_number(&g, "losses_error");
    for (int i = 0; i < RUN; i++) {
        struct config cfg;
        config_of(&g, &cfg);
        cfg.sampler_seed = i;
        losses_of(&cfg, STEPS, got[i]);
    }
    double error = golden_distance(*got, *want, (size_t)RUN * STEPS);
    print_message("losses: %.2f times autocast's error\n", error / autocast);
    if (!(error <= MORE_THAN_AUTOCAST * autocast))
        fail_msg("losses: off by %.3g, autocast by %.3g: expected at most %g times that", error, autocast,
                 MORE_THAN_AUTOCAST);
    golden_close(&g);
}

struct folder {
    char path[40];
};

/* From the beginning, or from where the last one saved. */
static void train_to(struct golden *g, const struct folder *at, int64_t steps, bool resume, const char *save)
{
    struct config cfg;
    struct run_result result;
    struct err err = {0};

    config_of(g, &cfg);
    cfg.batch_size = cfg.micro_batches = 1;
    cfg.max_steps = steps;
    cfg.ckpt_dir = arena_printf(&g->a, "%s/checkpoints", at->path);
    cfg.save_steps = STOP_AT;
    cfg.resume = resume ? cfg.ckpt_dir : "never";
    cfg.save_path = arena_printf(&g->a, "%s/%s", at->path, save);
    cleanup_fclose FILE *out = fopen("/dev/null", "w");
    struct run_env env = env_of(out);
    if (run(&cfg, &env, &result, &err))
        fail_msg("%s", err.msg);
}

static void read_weights(const struct folder *at, const char *name, struct buf *ret)
{
    char path[80];
    struct err err = {0};

    snprintf(path, sizeof(path), "%s/%s", at->path, name);
    if (fs_read(path, ret, &err))
        fail_msg("%s", err.msg);
}

/* Ten steps more, in the middle of an epoch. */
static void a_resumed_run_gives_the_same_bits(void **state)
{
    struct golden g;
    struct folder at = {"/tmp/gpt2-bf16-XXXXXX"};
    cleanup_buf struct buf whole = BUF_INIT(1 << 20);
    cleanup_buf struct buf resumed = BUF_INIT(1 << 20);

    (void)state;
    golden_open(&g, "gpt2_bf16.safetensors");
    assert_non_null(mkdtemp(at.path));
    train_to(&g, &at, STOP_AT + STEPS, false, "whole.safetensors");
    read_weights(&at, "whole.safetensors", &whole);
    assert_int_equal(system(arena_printf(&g.a, "rm -r %s/checkpoints", at.path)), 0);
    train_to(&g, &at, STOP_AT, false, "part.safetensors");
    train_to(&g, &at, STOP_AT + STEPS, true, "resumed.safetensors");
    read_weights(&at, "resumed.safetensors", &resumed);
    assert_int_equal(whole.len, resumed.len);
    assert_memory_equal(whole.data, resumed.data, whole.len);
    assert_int_equal(system(arena_printf(&g.a, "rm -r %s", at.path)), 0);
    golden_close(&g);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(losses_are_as_near_as_autocasts),
        cmocka_unit_test(a_resumed_run_gives_the_same_bits),
    };

    const struct gpu_plugin *plugin;

    assert_int_equal(argc, 2);
    plugins = argv[1];
    int none = a_gpu(plugins, &plugin);
    return none ? none : cmocka_run_group_tests(tests, NULL, NULL);
}
