/* a_run.c - it is made, runs, and tells. */
#include "a_run.h"

#include "test.h"

#include "common/buf.h"
#include "common/fsutil.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

static const char MODEL[] = "name: tiny\n"
                            "model:\n"
                            "  input: {rows: 8, cols: 8, channels: 1}\n"
                            "  layers:\n"
                            "    - {type: conv2d, name: conv, out: 4, kernel: 3}\n"
                            "    - relu\n"
                            "    - flatten\n"
                            "    - {type: linear, name: out, out: 10}\n"
                            "loss: cross_entropy\n"
                            "optimizer: {type: adam, lr: 0.01}\n"
                            "schedule: {type: step, gamma: 0.5}\n"
                            "data: {format: idx, mean: 0.5, std: 0.5, train_items: 48, val_items: 16}\n"
                            "defaults: {epochs: 2, batch_size: 12, log_interval: 2}\n";

int make(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));

    small_data_make(f->dir);
    assert_int_equal(config_decode("tiny.yaml", MODEL, strlen(MODEL), &f->arena, &f->cfg, &f->err), 0);
    f->cfg.data_dir = f->dir;
    f->cfg.timeout_s = 60;
    f->cfg.ckpt_dir = arena_printf(&f->arena, "%s/checkpoints", f->dir);
    f->cfg.resume = "never";
    f->stop.fd = -1;
    *state = f;
    return 0;
}

int unmake(void **state)
{
    struct fixture *f = *state;

    small_data_remove(f->dir);
    arena_release(&f->arena);
    free(f->text);
    free(f);
    return 0;
}

static char *alone(const char *name)
{
    (void)name;
    return NULL;
}

int raise_next;

static int64_t raising_mono_ms(void *ctx)
{
    int signal = raise_next;

    (void)ctx;
    raise_next = 0;
    if (signal)
        raise(signal);
    return clock_mono_ms();
}

int go(struct fixture *f)
{
    FILE *out;

    free(f->text);
    f->text = NULL;
    f->err = (struct err){0};
    out = open_memstream(&f->text, &f->len);
    struct run_env env = {.get = alone, .clock = clock_system(), .out = out, .stop = &f->stop};
    env.started_ms = env.clock.mono_ms(env.clock.ctx);
    env.clock.mono_ms = raising_mono_ms;
    int rc = run(&f->cfg, &env, &f->result, &f->err);
    stop_close(&f->stop);
    fclose(out);
    return rc;
}

char *path_in(struct fixture *f, const char *name)
{
    return arena_printf(&f->arena, "%s/%s", f->dir, name);
}

void expect_lines(const char *text, const char *const *want)
{
    for (; *want; want++) {
        const char *line = text;
        const char *w = *want;
        while (*w) {
            if (*w == '%') {
                size_t digits = strspn(text, "0123456789.");
                if (!digits)
                    break;
                text += digits;
            } else if (*w == *text) {
                text++;
            } else {
                break;
            }
            w++;
        }
        if (*w)
            fail_msg("expected \"%s\", got \"%.80s\"", *want, line);
        if (text[-1] != '\n') {
            text = strchr(text, '\n');
            assert_non_null(text);
            text++;
        }
    }
    assert_string_equal(text, "");
}

void own_lines(struct fixture *f)
{
    f->cfg.own_lines = true;
    f->cfg.lines = (struct lines_spec){.start = "{epochs} epochs of {batch_size}",
                                       .epoch_start = "{rank}: {epoch} of {steps}",
                                       .epoch_end = "{rank} Loss: {loss}",
                                       .saved = "{epoch} at {save_path}"};
    f->cfg.test = false;
    f->cfg.epochs = 3;
    f->cfg.save_every = 2;
    f->cfg.log_interval = 0;
    f->cfg.save_path = "m.pt";
}

void weights_after(struct fixture *f, int64_t steps, struct buf *out)
{
    f->cfg.max_steps = steps;
    f->cfg.save_path = path_in(f, "m.safetensors");
    assert_int_equal(go(f), 0);
    buf_clear(out);
    assert_int_equal(fs_read(f->cfg.save_path, out, &f->err), 0);
}
