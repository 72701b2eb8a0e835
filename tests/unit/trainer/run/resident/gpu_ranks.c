/* gpu_ranks.c - forked ranks that do what the program does. */
#include "gpu_ranks.h"

#include "../../gpt2_golden.h"
#include "common/contract.h"
#include "kernels/device.h"
#include "ports.h"
#include "scratch.h"
#include "test.h"
#include "trainer/launched.h"
#include "trainer/run/run.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { FAILED = 99, SKIPPED = 77, EMULATED_GPUS = 2 };

struct gpu_ranks_machine gpu_ranks;

/* Batches of 24, 24 and 16 of 64 samples: steps of two sizes, each recorded. */
static const char MODEL[] = "name: tiny\n"
                            "model:\n"
                            "  input: {rows: 8, cols: 8, channels: 1}\n"
                            "  layers:\n"
                            "    - flatten\n"
                            "    - {type: linear, name: hidden, out: 16}\n"
                            "    - relu\n"
                            "    - {type: linear, name: out, out: 10}\n"
                            "loss: cross_entropy\n"
                            "optimizer: {type: sgd, lr: 0.02, momentum: 0.9}\n"
                            "data: {format: idx, mean: 0.5, std: 0.5}\n"
                            "defaults: {epochs: 2, batch_size: 24, log_interval: 1}\n";

/* 40 windows in order, four a step: ranks together take what one takes alone. */
static const char GPT2[] = "name: small\n"
                           "model:\n"
                           "  gpt2: {vocab: 31, block_size: 12, n_layer: 2, n_head: 2, n_embd: 16}\n"
                           "loss: cross_entropy\n"
                           "optimizer: {type: adamw, lr: 0.006, beta1: 0.9, beta2: 0.95, weight_decay: 0.1, "
                           "decay: matrices, clip: 1.0}\n"
                           "schedule: {type: cosine, per: step, warmup: 3, warmup_full: last, min_lr: "
                           "0.0006}\n"
                           "data: {format: tokens, train: gpt2.bin, val: gpt2.bin, shuffle: false}\n"
                           "defaults: {epochs: 1, batch_size: 1, total_batch_tokens: 48, val_every: 5, "
                           "val_steps: 3, log_interval: 1}\n";

static char *environment(const char *name)
{
    char *told = launched_get(name);

    return told ? told : getenv(name);
}

/* A rank's whole life, as the program's. */
static int rank_main(const struct gpu_ranks_task *t, int rank, int out)
{
    cleanup_arena struct arena arena = {0};
    struct config cfg;
    struct run_result result;
    struct err err = {0};

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    launched = (struct launched){.rank = rank, .world = t->world, .port = launched.port, .test = "gpu-ranks"};
    if (t->fault)
        setenv("FAKE_NCCL", t->fault, 1);
    if (t->early)
        setenv("FAKE_STREAMS", "early", 1);
    if (!gpu_ranks.emulated || t->world > EMULATED_GPUS)
        setenv("NCCL_MULTI_RANK_GPU_ENABLE", "1", 1); /* where there is a GPU for each, it changes nothing */
    if (!gpu_ranks.emulated && t->world > GPU_RANKS)
        setenv("NCCL_MAX_CTAS", "4", 0); /* kernels of ranks that share one must all fit */
    const char *model = t->model ? t->model : t->sequences ? GPT2 : MODEL;
    if (config_decode("tiny.yaml", model, strlen(model), &arena, &cfg, &err)) {
        fprintf(stderr, "%s\n", err.msg);
        return FAILED;
    }
    cfg.data_dir = t->sequences ? golden_dir() : gpu_ranks.data;
    cfg.ckpt_dir = t->checkpoints ? t->checkpoints : arena_printf(&arena, "%s/checkpoints", gpu_ranks.data);
    cfg.resume = t->checkpoints ? "auto" : "never";
    cfg.save_steps = t->checkpoints ? t->max_steps : 0;
    cfg.max_steps = t->max_steps;
    cfg.precision = t->bf16 ? PRECISION_BF16 : PRECISION_F32;
    if (t->clip > 0)
        cfg.optimizer.clip = t->clip;
    cfg.backend = (int)t->backend;
    cfg.no_cuda = t->no_cuda || (t->second_on_cpu && rank == 1);
    if (t->bucket_mb > 0)
        cfg.bucket_mb = t->bucket_mb;
    cfg.init_from = t->init_from;
    cfg.save_path = t->save_path;
    if (!t->sequences)
        cfg.batch_size = GPU_RANKS_BATCH / (cfg.model.stages ? 1 : t->world);
    cfg.log_interval = t->log_interval;
    cfg.log_format = LOG_FORMAT_JSON;
    if (t->epochs || (!t->sequences && !t->model))
        cfg.epochs = t->epochs ? t->epochs : 2;
    cfg.timeout_s = (double)(t->timeout_s ? t->timeout_s : GPU_RANKS_LATE_S);
    struct run_env env = {
        .get = environment, .clock = clock_system(), .out = fdopen(out, "w"), .gpu = gpu_ranks.gpu};
    env.started_ms = env.clock.mono_ms(env.clock.ctx);
    setvbuf(env.out, NULL, _IOLBF, 0);
    if (run(&cfg, &env, &result, &err))
        fprintf(stderr, "rank %d: exit status %d: %s\n", rank, result.exit_code, err.msg);
    fflush(env.out);
    return result.exit_code;
}

struct gpu_ranks gpu_ranks_start(const struct gpu_ranks_task *t)
{
    struct gpu_ranks r = {.world = t->world};
    int ends[2];

    assert_int_equal(pipe(ends), 0);
    launched.port = ports_take();
    fflush(NULL);
    for (int i = 0; i < t->world; i++) {
        r.pid[i] = fork();
        assert_true(r.pid[i] >= 0);
        if (r.pid[i])
            continue;
        close(ends[0]);
        int out = i == 0 ? ends[1] : open("/dev/null", O_WRONLY);
        if (i != 0)
            close(ends[1]); /* the end of rank 0's output is rank 0's end */
        _exit(rank_main(t, i, out));
    }
    close(ends[1]);
    r.out = fdopen(ends[0], "r");
    return r;
}

void gpu_ranks_read(struct gpu_ranks *r)
{
    char line[1024];

    while (fgets(line, sizeof(line), r->out))
        continue;
    fclose(r->out);
}

int gpu_ranks_ended(pid_t pid)
{
    int status;

    while (waitpid(pid, &status, 0) < 0)
        assert_int_equal(errno, EINTR);
    return WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_CODE_SIGNAL_BASE + WTERMSIG(status);
}

struct gpu_ranks_shown gpu_ranks_shown_by(const struct gpu_ranks_task *t)
{
    struct gpu_ranks r = gpu_ranks_start(t);
    struct gpu_ranks_shown s = {.n = 0};
    char line[1024];

    while (fgets(line, sizeof(line), r.out)) {
        const char *at = strstr(line, "\"loss\":");
        if (strstr(line, "sm_"))
            s.on_gpu = true;
        assert_true(s.n < GPU_RANKS_LOSSES);
        if (at)
            s.loss[s.n++] = strtod(at + strlen("\"loss\":"), NULL);
    }
    fclose(r.out);
    for (int i = 0; i < r.world; i++)
        assert_int_equal(gpu_ranks_ended(r.pid[i]), 0);
    assert_int_equal(s.on_gpu, !t->no_cuda);
    return s;
}

void gpu_ranks_check_shown(const struct gpu_ranks_shown *want, const struct gpu_ranks_shown *got,
                           double share, const char *what)
{
    assert_int_equal(got->n, want->n);
    for (int i = 0; i < got->n; i++)
        if (!(fabs(got->loss[i] - want->loss[i]) <= share * fabs(want->loss[i])))
            fail_msg("%s: loss %d of %d is %.9g, expected %.9g", what, i, got->n, got->loss[i],
                     want->loss[i]);
}

void gpu_ranks_check_within(const struct gpu_ranks_shown *want, const struct gpu_ranks_task *t, double share,
                            const char *what)
{
    const struct gpu_ranks_shown got = gpu_ranks_shown_by(t);

    gpu_ranks_check_shown(want, &got, share, what);
}

struct gpu_ranks_shown gpu_ranks_check_ways(struct gpu_ranks_task t, int world, int least, const char *what)
{
    t.backend = COLLECTIVES_GLOO;
    t.world = 1;
    t.no_cuda = true;
    const struct gpu_ranks_shown want = gpu_ranks_shown_by(&t);
    assert_true(want.n >= least);
    t.no_cuda = false;
    gpu_ranks_check_within(&want, &t, 1e-5, what);
    t.world = world;
    gpu_ranks_check_within(&want, &t, 1e-5, what);
    t.backend = COLLECTIVES_NCCL;
    gpu_ranks_check_within(&want, &t, 1e-5, what);
    return want;
}

/* Whether they train. A busy machine may not get them there within their time-out. */
static bool train(struct gpu_ranks *r)
{
    char line[1024];

    for (int shown = 0; shown < 4;) {
        if (!fgets(line, sizeof(line), r->out))
            return false;
        shown += strstr(line, "\"loss\":") != NULL;
    }
    return true;
}

static struct gpu_ranks start_to_train(struct gpu_ranks_task *t)
{
    for (;;) {
        struct gpu_ranks r = gpu_ranks_start(t);
        if (train(&r))
            return r;
        fclose(r.out);
        for (int i = 0; i < r.world; i++)
            (void)gpu_ranks_ended(r.pid[i]);
        assert_true(t->timeout_s < GPU_RANKS_LATE_S);
        t->timeout_s *= 2;
    }
}

void gpu_ranks_check_signal(struct gpu_ranks_task t, int signal, int exit_code)
{
    const int64_t soon_s = gpu_ranks.emulated ? GPU_RANKS_SOON_S : GPU_RANKS_SOON_ON_A_GPU_S;

    t.log_interval = 1;
    t.epochs = 1000000;
    t.timeout_s = signal == SIGSTOP ? soon_s : GPU_RANKS_LATE_S;
    struct gpu_ranks r = start_to_train(&t);
    assert_int_equal(kill(r.pid[1], signal), 0);
    gpu_ranks_read(&r);
    bool found = false;
    for (int i = 0; i < r.world; i++) {
        int code = i == 1 ? exit_code : gpu_ranks_ended(r.pid[i]);
        found = found || (i != 1 && code == exit_code);
        assert_true(code == exit_code || code == EXIT_CODE_PEER_LOST);
    }
    assert_true(found);
    kill(r.pid[1], SIGKILL);
    assert_int_equal(gpu_ranks_ended(r.pid[1]), EXIT_CODE_SIGNAL_BASE + SIGKILL);
}

void gpu_ranks_check_lost(struct gpu_ranks_task t)
{
    t.backend = COLLECTIVES_NCCL;
    gpu_ranks_check_signal(t, SIGKILL, EXIT_CODE_PEER_LOST);
    gpu_ranks_check_signal(t, SIGSTOP, EXIT_CODE_RETRYABLE);
    t.backend = COLLECTIVES_GLOO;
    gpu_ranks_check_signal(t, SIGKILL, EXIT_CODE_PEER_LOST);
}

static bool has_gpu(void)
{
    return access("/dev/nvidiactl", F_OK) == 0 || access("/dev/dxg", F_OK) == 0;
}

int gpu_ranks_find(int argc, char **argv)
{
    assert_in_range(argc, 3, 4);
    if (argc == 4)
        cmocka_set_test_filter(argv[3]);
    gpu_ranks.emulated = strcmp(argv[1], "emulated") == 0;
    gpu_ranks.gpu = (struct gpu_where){.dir = argv[2], .dev = "/dev"};
    if (gpu_ranks.emulated || has_gpu())
        return 0;
    const bool required = getenv("TK_GPU_REQUIRED");
    fprintf(stderr, "%s: no NVIDIA GPU on this machine\n", required ? "TK_GPU_REQUIRED is set" : "skipped");
    return required ? 1 : SKIPPED;
}

/* Where GPUs are none: a /dev with a driver in it. */
int gpu_ranks_make(void **state)
{
    static char dev[] = "/tmp/gpu-ranks-XXXXXX";
    char path[64], gpus[8];

    (void)state;
    small_data_make_in(scratch_home(), gpu_ranks.data);
    if (!gpu_ranks.emulated)
        return 0;
    gpu_ranks.gpu.dev = mkdtemp(dev);
    snprintf(path, sizeof(path), "%s/nvidiactl", dev);
    cleanup_close int fd = open(path, O_CREAT | O_WRONLY, 0600);
    snprintf(gpus, sizeof(gpus), "%d", EMULATED_GPUS);
    setenv("FAKE_GPUS", gpus, 1);
    return fd < 0;
}

int gpu_ranks_unmake(void **state)
{
    char path[64];

    (void)state;
    small_data_remove(gpu_ranks.data);
    snprintf(path, sizeof(path), "%s/nvidiactl", gpu_ranks.gpu.dev);
    return gpu_ranks.emulated && (unlink(path) || rmdir(gpu_ranks.gpu.dev));
}
