/* a_resume.c - ranks with an environment and a clock of their own, and what they leave. */
#include "a_resume.h"
#include "../launched.h"

#include "test.h"

#include "common/contract.h"
#include "common/fsutil.h"
#include "host/rank_contract.h"
#include "seed.h"
#include "trainer/run/run.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char MODEL[] = "name: tiny\n"
                            "model:\n"
                            "  input: {rows: 8, cols: 8, channels: 1}\n"
                            "  layers:\n"
                            "    - {type: conv2d, name: conv, out: 4, kernel: 3}\n"
                            "    - {type: batchnorm2d, name: bn}\n"
                            "    - relu\n"
                            "    - flatten\n"
                            "    - {type: dropout, p: 0.2}\n"
                            "    - {type: linear, name: out, out: 10}\n"
                            "loss: cross_entropy\n"
                            "optimizer: %s\n"
                            "schedule: {type: step, gamma: 0.5}\n"
                            "data: {format: idx, mean: 0.5, std: 0.5, train_items: 47, val_items: 17}\n"
                            "defaults: {epochs: 3, batch_size: 5, log_interval: 1000}\n";

char *path_in(struct fixture *f, const char *name)
{
    return arena_printf(&f->arena, "%s/%s", f->dir, name);
}

char *own_dir(struct fixture *f)
{
    return arena_printf(&f->arena, "%s/resume-%d-%08" PRIx32, f->cfg.ckpt_dir, (int)getpid(),
                        config_resumable(&f->cfg));
}

void configure(struct fixture *f, const char *optimizer)
{
    const char *text = arena_printf(&f->arena, MODEL, optimizer);

    if (config_decode("tiny.yaml", text, strlen(text), &f->arena, &f->cfg, &f->err))
        fail_msg("%s", f->err.msg);
    f->cfg.data_dir = f->dir;
    f->cfg.timeout_s = 60;
    f->cfg.ckpt_dir = path_in(f, "checkpoints");
    f->cfg.save_path = path_in(f, "m.safetensors");
}

int make(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));

    small_data_make(f->dir);
    configure(f, "{type: adam, lr: 0.01}");
    f->random = (unsigned)seed_of_run();
    *state = f;
    return 0;
}

int unmake(void **state)
{
    struct fixture *f = *state;

    small_data_remove(f->dir);
    arena_release(&f->arena);
    free(f);
    return 0;
}

static struct {
    const char *job;    /* PTJ_JOB_UID */
    const char *launch; /* TORCHELASTIC_RUN_ID; NULL: one for all of this test */
    const char *restarts;
    const char *errors; /* TORCHELASTIC_ERROR_FILE */
    int clock_calls;    /* until the signal */
    int signal;
} me;

static char *environment(const char *name)
{
    if (strcmp(name, CONTRACT_ENV_JOB_UID) == 0)
        return (char *)me.job;
    if (strcmp(name, CONTRACT_ENV_RESTART_COUNT) == 0)
        return (char *)me.restarts;
    if (strcmp(name, CONTRACT_ENV_ERROR_FILE) == 0)
        return (char *)me.errors;
    if (strcmp(name, CONTRACT_ENV_RUN_ID) == 0 && me.launch)
        return (char *)me.launch;
    return launched_get(name);
}

/* Rank 0 reads the clock around each step, each save and each validation: that counts the moments of a run. */
static int64_t counting_mono_ms(void *ctx)
{
    (void)ctx;
    if (me.clock_calls > 0 && --me.clock_calls == 0)
        raise(me.signal);
    return clock_mono_ms();
}

struct resume_run {
    struct fixture *f;
    const struct plan *plan;
};

static void failed(const struct run_env *env, const struct run_result *result, const struct err *err)
{
    (void)result;
    fprintf(env->out, "error: %s\n", err->msg);
    fflush(env->out);
}

static int rank_main(void *ctx, int rank)
{
    const struct resume_run *run_of = ctx;
    const struct plan *p = run_of->plan;
    struct fixture *f = run_of->f;
    struct run_result result;
    struct stop stop = {.fd = -1};
    cleanup_fclose FILE *out = fopen(path_in(f, arena_printf(&f->arena, "out.%d", rank)), "w");
    struct run_env env = {
        .get = environment, .clock = clock_system(), .out = out, .stop = &stop, .failed = failed};

    me.job = p->job;
    me.launch = p->launch;
    me.restarts = p->restarts;
    me.errors = p->errors;
    me.signal = p->signal;
    if (p->rank_0_saves && rank)
        f->cfg.save_steps = 0; /* this process's */
    me.clock_calls = rank == p->rank ? p->calls : 0;
    env.clock.mono_ms = counting_mono_ms;
    (void)run(&f->cfg, &env, &result, &f->err);
    return result.exit_code;
}

int go(struct fixture *f, struct plan p, int codes[static RANKS])
{
    launched.port = 29513;
    launched.test = "resume";
    launched_run(p.world, rank_main, &(struct resume_run){f, &p}, codes);
    return codes[0];
}

void read_file(const char *path, struct buf *out)
{
    struct err err;

    buf_clear(out);
    if (fs_read(path, out, &err))
        fail_msg("%s", err.msg);
}

bool says(struct fixture *f, const char *text)
{
    cleanup_buf struct buf out = BUF_INIT(1 << 20);

    read_file(path_in(f, "out.0"), &out);
    return strstr(buf_str(&out), text) != NULL;
}

void forget(struct fixture *f)
{
    char *command = arena_printf(&f->arena, "rm -rf %s", f->cfg.ckpt_dir);

    assert_int_equal(system(command), 0);
    unlink(f->cfg.save_path);
}

void undisturbed(struct fixture *f, int world, struct buf *weights)
{
    int codes[RANKS];

    forget(f);
    f->cfg.resume = "never";
    if (go(f, (struct plan){.world = world}, codes)) {
        cleanup_buf struct buf out = BUF_INIT(1 << 20);
        read_file(path_in(f, "out.0"), &out);
        fail_msg("exit %d: %s", codes[0], buf_str(&out));
    }
    read_file(f->cfg.save_path, weights);
    forget(f);
    f->cfg.resume = "auto";
}

void expect_weights(struct fixture *f, const struct buf *want)
{
    cleanup_buf struct buf got = BUF_INIT(1 << 20);

    read_file(f->cfg.save_path, &got);
    assert_int_equal(got.len, want->len);
    assert_memory_equal(got.data, want->data, want->len);
}
