/* a_resume.c - whole runs of a_run.h with an environment and a clock that counts, and what they leave. */
#include "a_resume.h"

#include "test.h"

#include "common/contract.h"
#include "common/fsutil.h"
#include "host/rank_contract.h"
#include "seed.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

unsigned resume_random;

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

char *own_dir(struct fixture *f)
{
    return arena_printf(&f->arena, "%s/resume-%d-%08" PRIx32, f->cfg.ckpt_dir, (int)getpid(),
                        config_resumable(&f->cfg));
}

void configure(struct fixture *f, const char *optimizer)
{
    void *state = f;

    (void)make_of(&state, arena_printf(&f->arena, MODEL, optimizer));
    f->cfg.resume = "auto";
    f->cfg.save_path = path_in(f, "m.safetensors");
}

int make_resume(void **state)
{
    resume_random = (unsigned)seed_of_run();
    (void)make(state);
    configure(*state, "{type: adam, lr: 0.01}");
    return 0;
}

/* What is under way; how often rank `rank` still reads its clock until the signal. */
static struct plan now;
static int calls_left;

static char *environment(const char *name)
{
    if (strcmp(name, CONTRACT_ENV_JOB_UID) == 0)
        return (char *)now.job;
    if (strcmp(name, CONTRACT_ENV_RESTART_COUNT) == 0)
        return (char *)now.restarts;
    if (strcmp(name, CONTRACT_ENV_ERROR_FILE) == 0)
        return (char *)now.errors;
    if (strcmp(name, CONTRACT_ENV_RUN_ID) == 0 && now.launch)
        return (char *)now.launch;
    return launched_get(name);
}

/* Rank 0 reads the clock around each step, each save and each validation: that counts the moments of a run. */
static int64_t counting_mono_ms(void *ctx)
{
    (void)ctx;
    if (calls_left > 0 && --calls_left == 0)
        raise(now.signal);
    return clock_mono_ms();
}

static void begin(struct config *cfg, int rank)
{
    calls_left = rank == now.rank ? now.calls : 0;
    if (now.rank_0_saves && rank)
        cfg->save_steps = 0; /* this process's */
}

int go_by(struct fixture *f, struct plan p, int codes[static RANKS])
{
    now = p;
    a_run_get = environment;
    a_run_mono_ms = counting_mono_ms;
    launched.test = "resume";
    go_ranks(f, p.world, begin, codes);
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
    if (go_by(f, (struct plan){.world = world}, codes)) {
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
    assert_same(&got, want);
}
