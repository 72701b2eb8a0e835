/* test_session_device.c - whole runs that request a GPU, or none, on machines of every kind: who gets which, and one line with
 * exit status 2 for who gets none and needs one.
 */
#include "test.h"

#include "../launched.h"
#include "common/buf.h"
#include "common/contract.h"
#include "common/fsutil.h"
#include "ports.h"
#include "trainer/run/run.h"
#include "trainer/small_data.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char MODEL[] = "name: tiny\n"
                            "model:\n"
                            "  input: {rows: 8, cols: 8, channels: 1}\n"
                            "  layers: [flatten, {type: linear, name: out, out: 10}]\n"
                            "loss: cross_entropy\n"
                            "optimizer: {type: sgd, lr: 0.01}\n"
                            "data: {format: idx, mean: 0.5, std: 0.5}\n"
                            "defaults: {epochs: 1, batch_size: 32}\n";

static const char *plugins;
static char dev[] = "/tmp/rig-device-XXXXXX"; /* a /dev with a driver in it */

/* One rank on one machine. */
struct machine {
    enum collectives_backend backend;
    bool no_cuda;
    enum precision precision;
    const char *kind; /* of plug-in; NULL: some_gpus */
    const char *gpus, *driver;
    const char *visible, *shared; /* NULL: not set */
    bool second;                  /* rank 1 of 2, else one alone */
    const char *line;             /* a part of the error, or NULL: it trains */
    const char *note;             /* then: a part of the output */
};

static const struct machine *the_machine;

static char *environment(const char *name)
{
    if (strcmp(name, "CUDA_VISIBLE_DEVICES") == 0)
        return (char *)(uintptr_t)the_machine->visible;
    if (strcmp(name, "NCCL_MULTI_RANK_GPU_ENABLE") == 0)
        return (char *)(uintptr_t)the_machine->shared;
    return launched.world > 1 ? launched_get(name) : NULL;
}

/* What it printed is the caller's. */
static char *train(const struct machine *m, const char *data, int *exit_code, struct err *err)
{
    cleanup_arena struct arena arena = {0};
    struct config cfg;
    struct run_result result;
    char *text = NULL;
    size_t len;
    FILE *out = open_memstream(&text, &len);

    assert_int_equal(config_decode("tiny.yaml", MODEL, strlen(MODEL), &arena, &cfg, err), 0);
    cfg.data_dir = data;
    cfg.ckpt_dir = arena_printf(&arena, "%s/checkpoints", data);
    cfg.resume = "never";
    cfg.timeout_s = 600;
    cfg.backend = (int)m->backend;
    cfg.no_cuda = m->no_cuda;
    cfg.precision = (int)m->precision;
    setenv("FAKE_GPUS", m->gpus ? m->gpus : "0", 1);
    setenv("FAKE_DRIVER", m->driver ? m->driver : "13050", 1);
    the_machine = m;
    struct run_env env = {
        .get = environment,
        .clock = clock_system(),
        .out = out,
        .gpu = {.dir = arena_printf(&arena, "%s/%s", plugins, m->kind ? m->kind : "some_gpus"), .dev = dev}};
    int rc = run(&cfg, &env, &result, err);
    *exit_code = result.exit_code;
    fclose(out);
    assert_int_equal(rc, m->line ? -1 : 0);
    assert_false(result.device_lost);
    return text;
}

#define NCCL .backend = COLLECTIVES_NCCL
#define GLOO .backend = COLLECTIVES_GLOO

static const struct machine refused[] = {
    {NCCL, .kind = "nothing", .line = "nothing/libtk_cuda.so: no GPU support there"},
    {NCCL, .line = "--backend nccl: no GPU is visible"},
    {NCCL, .driver = "0", .line = "--backend nccl: no NVIDIA driver on this machine"},
    {NCCL, .gpus = "2", .driver = "12080", .line = "the NVIDIA driver serves CUDA 12.8, expected 13.0"},
    {NCCL, .visible = "7", .line = "no GPU is visible (CUDA_VISIBLE_DEVICES=7"},
    {NCCL, .gpus = "1", .no_cuda = true, .line = "--no_cuda forbids them"},
    {NCCL, .second = true, .gpus = "1", .line = "2 ranks here and 1 GPU visible"},
    {NCCL, .second = true, .gpus = "1", .visible = "3", .line = "1 GPU visible in CUDA_VISIBLE_DEVICES=3"},
    {NCCL, .second = true, .gpus = "1", .shared = "0", .line = "expected a GPU for each rank"},
    {GLOO, .precision = PRECISION_BF16, .line = "--precision: expected f32 on CPUs"},
};

static void who_needs_a_gpu_and_gets_none_is_told_in_a_line(void **state)
{
    for (size_t i = 0; i < ARRAY_LEN(refused); i++) {
        struct err err = {0};
        int code;
        launched.rank = refused[i].second;
        launched.world = refused[i].second ? 2 : 1;
        free(train(&refused[i], *state, &code, &err));
        launched.world = 1;
        if (code != EXIT_CODE_USAGE || !strstr(err.msg, refused[i].line) || strchr(err.msg, '\n'))
            fail_msg("row %zu: exit code %d, \"%s\", expected %d, \"%s\"", i, code, err.msg, EXIT_CODE_USAGE,
                     refused[i].line);
    }
}

static const struct machine on_the_cpu[] = {
    {GLOO, .kind = "nothing", .note = "training on the CPU: "},
    {GLOO, .gpus = "2", .no_cuda = true},
    {GLOO, .gpus = "2", .driver = "12080", .note = "training on the CPU: the NVIDIA driver serves CUDA 12.8"},
    {GLOO, .visible = ""},
    {GLOO, .visible = "7", .note = "no GPU is visible (CUDA_VISIBLE_DEVICES=7"},
};

static void who_needs_none_trains(void **state)
{
    for (size_t i = 0; i < ARRAY_LEN(on_the_cpu); i++) {
        const struct machine *m = &on_the_cpu[i];
        struct err err = {0};
        int code;
        char *text = train(m, *state, &code, &err);
        if (code || !strstr(text, "test loss") ||
            (m->note ? !strstr(text, m->note) : strstr(text, "CPU") != NULL))
            fail_msg("row %zu: exit code %d, \"%s\"", i, code, text);
        free(text);
    }
}

/* Every rank takes the GPU of its own number; where there are too few, those who may share do. */
static const struct choice {
    struct machine machine;
    int ranks;
    const char *taken[2];
} choices[] = {
    {{NCCL, .gpus = "1"}, 1, {"GPU 0 was taken"}},
    {{GLOO, .gpus = "2"}, 1, {"GPU 0 was taken"}},
    {{NCCL, .gpus = "2"}, 2, {"GPU 0 was taken", "GPU 1 was taken"}},
    {{GLOO, .gpus = "2"}, 2, {"GPU 0 was taken", "GPU 1 was taken"}},
    {{GLOO, .gpus = "1"}, 2, {"GPU 0 was taken", "GPU 0 was taken"}},
    {{NCCL, .gpus = "1", .shared = "1"}, 2, {"GPU 0 was taken", "GPU 0 was taken"}},
};
static const struct choice *the_choice;

static int take(void *data, int rank)
{
    const char *want = the_choice->taken[rank];
    struct machine m = the_choice->machine;
    struct err err = {0};
    int code;

    m.line = want;
    free(train(&m, data, &code, &err));
    if (strstr(err.msg, want))
        return 0;
    fprintf(stderr, "rank %d of %d: \"%s\", expected \"%s\"\n", rank, the_choice->ranks, err.msg, want);
    return 1;
}

static void each_rank_takes_its_own(void **state)
{
    for (size_t i = 0; i < ARRAY_LEN(choices); i++) {
        int codes[2];
        the_choice = &choices[i];
        launched_run(choices[i].ranks, take, *state, codes);
        for (int r = 0; r < choices[i].ranks; r++)
            assert_int_equal(codes[r], 0);
    }
    launched.world = 1;
}

static int make(void **state)
{
    static char data[SMALL_DATA_DIR_BYTES];
    char path[64];

    small_data_make(data);
    *state = data;
    if (!mkdtemp(dev))
        return -1;
    snprintf(path, sizeof(path), "%s/nvidiactl", dev);
    cleanup_close int fd = open(path, O_CREAT | O_WRONLY, 0600);
    return fd < 0;
}

static int unmake(void **state)
{
    char path[64];

    small_data_remove(*state);
    snprintf(path, sizeof(path), "%s/nvidiactl", dev);
    return unlink(path) || rmdir(dev);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_needs_a_gpu_and_gets_none_is_told_in_a_line),
        cmocka_unit_test(who_needs_none_trains),
        cmocka_unit_test(each_rank_takes_its_own),
    };

    assert_int_equal(argc, 2);
    plugins = argv[1];
    launched = (struct launched){.port = ports_take(), .world = 1, .test = "rig-device"};
    return cmocka_run_group_tests(tests, make, unmake);
}
